/** A service of books with Fastify, as a team writes it: zod, OpenAPI, rate limits, a prefix, hooks, errors. */

import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import rateLimit from '@fastify/rate-limit';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance } from 'fastify';
import {
  hasZodFastifySchemaValidationErrors,
  jsonSchemaTransform,
  serializerCompiler,
  validatorCompiler,
  type FastifyPluginAsyncZod,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Book, BookId, findBook, listBooks, Login, NewBook, Page, type Shelf } from './books.js';
import { removeBook, saveBook, titles } from './books.js';

declare module 'fastify' {
  interface FastifyRequest {
    reader: string;
  }
}

class Problem extends Error {
  constructor(readonly statusCode: number, readonly code: string, message: string) {
    super(message);
  }
}

export async function createBooks(shelf: Shelf): Promise<FastifyInstance> {
  const app = Fastify({ requestIdHeader: 'x-request-id', genReqId: () => randomUUID(), bodyLimit: 10_000 });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  await app.register(swagger, {
    openapi: { openapi: '3.1.0', info: { title: 'Books', version: '2.0.0' } },
    transform: jsonSchemaTransform,
  });
  await app.register(rateLimit, { global: false });

  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id).header('x-frame-options', 'DENY');
  });
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ code: 'not_found', message: 'Nothing is here.' }));
  app.setErrorHandler((error, _request, reply) => {
    if (hasZodFastifySchemaValidationErrors(error)) {
      const fields = error.validation.map(({ instancePath }) => `${error.validationContext}${instancePath}`);
      return reply.code(400).send({ code: 'invalid_request', message: 'Bad request.', fields });
    }
    const { statusCode = 500, code = 'error', message } = error as Partial<Problem>;
    if (statusCode >= 500) return reply.code(500).send({ code: 'error', message: 'Something went wrong.' });
    return reply.code(statusCode).send({ code, message });
  });

  await app.register(books(shelf), { prefix: '/v1' });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
  return app;
}

const books = (shelf: Shelf): FastifyPluginAsyncZod => async (parent) => {
  const app = parent.withTypeProvider<ZodTypeProvider>();
  const missing = (id: number): Problem => new Problem(404, 'book_missing', `There is no book ${id}.`);

  app.get('/books', { schema: { querystring: Page, response: { 200: z.array(Book) } } }, ({ query }) =>
    listBooks(shelf, query),
  );
  app.get('/books/:id', { schema: { params: BookId, response: { 200: Book } } }, ({ params }) => {
    const book = findBook(shelf, params.id);
    if (book === undefined) throw missing(params.id);
    return book;
  });
  app.post('/books', { schema: { body: NewBook, response: { 201: Book } } }, async (request, reply) => {
    const book = saveBook(shelf, request.body);
    reply.code(201).header('location', `/v1/books/${book.id}`);
    return book;
  });
  app.get('/titles.csv', { schema: { hide: true } }, (_request, reply) =>
    reply.type('text/csv; charset=utf-8').send(Readable.from(titles(shelf))),
  );
  app.get('/latest', { schema: { hide: true } }, (_request, reply) => reply.redirect('/v1/books/2'));
  app.get('/broken', { schema: { hide: true } }, () => {
    throw new TypeError('the password of the database is 1234');
  });
  const limited = { rateLimit: { max: 2, timeWindow: 60_000 } };
  app.get('/search', { config: limited, schema: { hide: true } }, () => ({ found: titles(shelf).length }));

  await app.register(async (admin) => {
    admin.addHook('onRequest', async (request, reply) => {
      const { success, data } = Login.safeParse(request.headers.authorization);
      if (!success) {
        reply.header('www-authenticate', 'Bearer');
        throw new Problem(401, 'unauthorized', 'Give a token.');
      }
      request.reader = data;
    });
    const schema = { params: BookId, response: { 204: z.null() } };
    admin.withTypeProvider<ZodTypeProvider>().delete('/books/:id', { schema }, async (request, reply) => {
      if (request.reader !== 'ada') throw new Problem(403, 'forbidden', `${request.reader} may not remove books.`);
      if (!removeBook(shelf, request.params.id)) throw missing(request.params.id);
      reply.code(204);
      return null;
    });
  });
};
