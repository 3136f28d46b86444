/** What the service of photos keeps, whichever framework it uses. */

export interface Photo {
  readonly id: number;
  readonly name: string;
  readonly bytes: number;
  title: string;
}
export type Album = Map<number, Photo>;

export function fillAlbum(): Album {
  const names = ['sea', 'hill', 'lake', 'wood', 'moor'];
  return new Map(names.map((name, i) => [i + 1, { id: i + 1, name: `${name}.png`, bytes: 100, title: `The ${name}` }]));
}
