/** The service of photos with Postern: its middleware stays, and so do its old pages. */

import type { Writable } from 'node:stream';
import compression from 'compression';
import cors from 'cors';
import express, { type Request } from 'express';
import { rateLimit } from 'express-rate-limit';
import helmet from 'helmet';
import { createProxyMiddleware } from 'http-proxy-middleware';
import morgan from 'morgan';
import multer, { MulterError } from 'multer';
import { BadRequest, connect, NotFound, Postern, reply, type PosternOptions, type RouteGroup } from 'postern';
import serveStatic from 'serve-static';
import { z } from 'zod';
import { createOldPages } from './photos-express.js';
import type { Album, Photo } from './photos.js';

interface Surroundings {
  readonly album: Album;
  readonly files: string;
  readonly prints: string;
  readonly log: Writable;
}

export function createPhotos({ album, files, prints, log }: Surroundings, options: PosternOptions = {}): Postern {
  const app = new Postern('photos', { trustProxy: ['127.0.0.0/8', '::1'], ...options });
  app.use(connect(morgan(':remote-addr :method :url :status', { stream: log })));
  app.use(connect(helmet()));
  app.use(connect(cors({ origin: ['https://photos.example'], credentials: true, exposedHeaders: ['location'] })));
  app.use(connect(compression({ threshold: 200 })));
  app.use(async (_ctx, next) => {
    const { error } = await next();
    if (error instanceof MulterError) throw new BadRequest(error.message);
  });
  app.mount('/files', express().disable('x-powered-by').use(serveStatic(files, { maxAge: '1h' })));
  app.mount('/prints', createProxyMiddleware({ target: prints, xfwd: true }));
  app.group('/v1', { bodyLimit: 1000 }, photos(album));
  app.mount('/old', createOldPages());
  return app;
}

const photos = (album: Album) => (app: RouteGroup): void => {
  const upload = multer({ limits: { fileSize: 1000, files: 1 } });
  const find = (id: string): Photo => {
    const photo = album.get(Number(id));
    if (photo === undefined) throw new NotFound(`There is no photo ${id}.`);
    return photo;
  };
  app.get('/photos', () => [...album.values()]);
  app.get('/photos/:id', ({ params }) => find(params.id));
  app.post('/photos', { middleware: [connect(upload.single('photo'))] }, ({ raw }) => {
    const { file, body } = raw.req as Request;
    if (file === undefined) throw new BadRequest('Give the file photo.');
    const photo = { id: album.size + 1, name: file.originalname, bytes: file.size, title: String(body.title) };
    album.set(photo.id, photo);
    return reply(photo, { status: 201, headers: { location: `/v1/photos/${photo.id}` } });
  });
  app.put('/photos/:id/title', { body: z.object({ title: z.string() }) }, ({ params }, { body }) => {
    find(params.id).title = body.title;
  });
  const limit = connect(rateLimit({ limit: 2, standardHeaders: 'draft-7', legacyHeaders: false }));
  app.get('/search', { middleware: [limit] }, ({ query }) => {
    return [...album.values()].filter(({ title }) => title.includes(String(query.get('q'))));
  });
  app.get('/broken', () => {
    throw new TypeError('the password of the database is 1234');
  });
};
