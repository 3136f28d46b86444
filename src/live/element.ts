/* The elements of the page: names from the mesh get in only as text and attributes, never as markup. */

declare const document: PageDocument;

/** The element of the page with an id. */
export function byId(id: string): PageElement {
  return document.querySelector(`#${id}`)!;
}

/** An element like the one in a template of the page. */
export function copyOf(template: string): PageElement {
  return byId(template).content.querySelector('tr, li, g')!.cloneNode(true);
}

/** Sets text only if it differs, so that a selection in it stays. */
export function setText(element: PageElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows a moment in a `time`. */
export function setTime(element: PageElement, ms: number, now: number): void {
  setText(element, describeMoment(ms, now));
  element.setAttribute('datetime', new Date(ms).toISOString());
}

/** `22:31:05`, with the date when that is another day's. */
export function describeMoment(ms: number, now: number): string {
  const then = new Date(ms);
  const time = then.toTimeString().slice(0, 8);
  if (then.toDateString() === new Date(now).toDateString()) return time;
  return `${then.toDateString().slice(4, 10)} ${time.slice(0, 5)}`;
}

/** `3 ms`, `2.4 s`. */
export function describeTime(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** `Element`, of HTML or SVG. */
export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  /** `key` of an edge, or `name` of a service. */
  readonly dataset: { key?: string; name?: string };
  readonly style: { setProperty(name: string, value: string): void };
  readonly classList: { toggle(name: string, on: boolean): void };
  readonly children: ArrayLike<PageElement>;
  /** Content of a `template`. */
  readonly content: PageElement;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
  closest(selector: string): PageElement | null;
  cloneNode(deep: boolean): PageElement;
  setAttribute(name: string, value: string | number): void;
  prepend(child: PageElement): void;
  append(child: PageElement): void;
  replaceChildren(...children: PageElement[]): void;
  insertBefore(child: PageElement, next: PageElement | null): void;
  remove(): void;
  /** Length of a `text` of SVG. */
  getComputedTextLength(): number;
}

/** `Document`. */
export interface PageDocument extends Pick<PageElement, 'querySelector' | 'querySelectorAll'> {
  title: string;
  readonly hidden: boolean;
  addEventListener(type: string, listener: (event: PageEvent) => void): void;
}

interface PageEvent {
  readonly target: PageElement;
  /** Where the pointer or the focus comes from, or goes to. */
  readonly relatedTarget: PageElement | null;
}
