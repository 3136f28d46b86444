/** The service of books with Postern. */

import { Readable } from 'node:stream';
import { rateLimit } from 'express-rate-limit';
import {
  ApiError,
  connect,
  defineErrorCodes,
  Forbidden,
  Postern,
  redirect,
  reply,
  TooManyRequests,
  Unauthorized,
  type PosternOptions,
  type RouteGroup,
} from 'postern';
import { toOpenApi } from 'postern/openapi';
import { z } from 'zod';
import { Book, BookId, findBook, listBooks, Login, NewBook, Page, type Shelf } from './books.js';
import { removeBook, saveBook, titles } from './books.js';

declare module 'postern' {
  interface State {
    reader: string;
  }
}

const Codes = defineErrorCodes({ book_missing: 1001 });

class BookMissing extends ApiError {
  static override statusCode = 404;
  static override errorCode = Codes.book_missing;
}

export function createBooks(shelf: Shelf, options: PosternOptions = {}): Postern {
  const app = new Postern('books', {
    version: '2.0.0',
    bodyLimit: 10_000,
    validateResponses: 'output',
    openapi: { info: { title: 'Books' } },
    ...options,
  });
  app.use(async (_ctx, next) => {
    const { headers } = await next();
    headers.set('x-frame-options', 'DENY');
  });
  app.group('/v1', books(shelf));
  app.get('/openapi.json', { openapi: false }, () => toOpenApi(app));
  return app;
}

const books = (shelf: Shelf) => (app: RouteGroup): void => {
  app.get('/books', { query: Page, response: z.array(Book) }, (_ctx, { query }) => listBooks(shelf, query));
  app.get('/books/:id', { params: BookId, response: Book, errors: [BookMissing] }, (_ctx, { params }) => {
    return findBook(shelf, params.id) ?? new BookMissing(`There is no book ${params.id}.`);
  });
  app.post('/books', { body: NewBook, response: { 201: Book } }, (_ctx, { body }) => {
    const book = saveBook(shelf, body);
    return reply(book, { status: 201, headers: { location: `/v1/books/${book.id}` } });
  });
  app.get('/titles.csv', { openapi: false }, () => {
    return reply(Readable.from(titles(shelf)), { headers: { 'content-type': 'text/csv; charset=utf-8' } });
  });
  app.get('/latest', { openapi: false }, () => redirect('/v1/books/2'));
  app.get('/broken', { openapi: false }, () => {
    throw new TypeError('the password of the database is 1234');
  });
  const limit = connect(rateLimit({ limit: 2, handler: (_req, _res, next) => next(new TooManyRequests()) }));
  app.get('/search', { openapi: false, middleware: [limit] }, () => ({ found: titles(shelf).length }));

  app.group('', (admin) => {
    admin.use((ctx, next) => {
      const { success, data } = Login.safeParse(ctx.headers.authorization);
      if (!success) throw new Unauthorized('Give a token.', { headers: { 'www-authenticate': 'Bearer' } });
      ctx.state.reader = data;
      return next();
    });
    const options = { params: BookId, response: { 204: null }, errors: [Forbidden, BookMissing] };
    admin.delete('/books/:id', options, ({ state }, { params }) => {
      if (state.reader !== 'ada') throw new Forbidden(`${state.reader} may not remove books.`);
      if (!removeBook(shelf, params.id)) throw new BookMissing(`There is no book ${params.id}.`);
    });
  });
};
