/** What the service of books is about, whichever framework it uses: schemas, and books on a shelf. */

import { z } from 'zod';

export const NewBook = z.object({
  title: z.string().min(2),
  year: z.number().int(),
  tags: z.array(z.string()).default([]),
});
export const Book = NewBook.extend({ id: z.number() });
export const BookId = z.object({ id: z.coerce.number().int() });
export const Page = z.object({
  page: z.coerce.number().int().min(1).default(1),
  size: z.coerce.number().max(50).default(2),
});
export const Login = z.string().regex(/^Bearer /).transform((text) => text.slice(7));

/** A book as it is kept, with a member that no client gets. */
export type Stored = z.infer<typeof Book> & { readonly paid: number };
export type Shelf = Map<number, Stored>;

export function fillShelf(): Shelf {
  const shelf: Shelf = new Map();
  for (const title of ['Emma', 'Dracula', 'Ulysses']) saveBook(shelf, { title, year: 1900, tags: ['old'] });
  return shelf;
}

export function listBooks(shelf: Shelf, { page, size }: z.infer<typeof Page>): Stored[] {
  return [...shelf.values()].slice((page - 1) * size, page * size);
}

export function findBook(shelf: Shelf, id: number): Stored | undefined {
  return shelf.get(id);
}

export function saveBook(shelf: Shelf, book: z.infer<typeof NewBook>): Stored {
  const stored = { id: shelf.size + 1, ...book, paid: 12 };
  shelf.set(stored.id, stored);
  return stored;
}

export function removeBook(shelf: Shelf, id: number): boolean {
  return shelf.delete(id);
}

export function titles(shelf: Shelf): string[] {
  return [...shelf.values()].map(({ title }) => `${title}\n`);
}
