/** A service of photos with Express 5 and the middleware that such services use. */

import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import compression from 'compression';
import cors from 'cors';
import express, { Router, type ErrorRequestHandler, type Express } from 'express';
import { rateLimit } from 'express-rate-limit';
import helmet from 'helmet';
import { createProxyMiddleware } from 'http-proxy-middleware';
import morgan from 'morgan';
import multer, { MulterError } from 'multer';
import type { Album } from './photos.js';

class HttpProblem extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

interface Surroundings {
  readonly album: Album;
  readonly files: string;
  readonly prints: string;
  readonly log: Writable;
}

export function createPhotos({ album, files, prints, log }: Surroundings): Express {
  const app = express();
  app.set('trust proxy', 'loopback');
  app.use((req, res, next) => {
    res.set('x-request-id', req.get('x-request-id') ?? randomUUID());
    next();
  });
  app.use(morgan(':remote-addr :method :url :status', { stream: log }));
  app.use(helmet());
  app.use(cors({ origin: ['https://photos.example'], credentials: true, exposedHeaders: ['location'] }));
  app.use(compression({ threshold: 200 }));
  app.use('/files', express.static(files, { maxAge: '1h' }));
  app.use('/prints', createProxyMiddleware({ target: prints, xfwd: true }));
  app.use('/v1', photos(album));
  app.use('/old', createOldPages());
  app.use((_req, _res, next) => next(new HttpProblem(404, 'Nothing is here.')));
  const answer: ErrorRequestHandler = (error: Partial<HttpProblem>, _req, res, _next) => {
    const { status = error instanceof MulterError ? 400 : 500, message = '' } = error;
    res.status(status).json({ error: status < 500 ? message : 'Something went wrong.' });
  };
  app.use(answer);
  return app;
}

function photos(album: Album): Router {
  const router = Router();
  const upload = multer({ limits: { fileSize: 1000, files: 1 } });
  router.use(express.json({ limit: 1000 }));
  router.get('/photos', (_req, res) => {
    res.json([...album.values()]);
  });
  router.get('/photos/:id', (req, res) => {
    const photo = album.get(Number(req.params.id));
    if (photo === undefined) throw new HttpProblem(404, `There is no photo ${req.params.id}.`);
    res.json(photo);
  });
  router.post('/photos', upload.single('photo'), (req, res) => {
    if (req.file === undefined) throw new HttpProblem(400, 'Give the file photo.');
    const { originalname: name, size: bytes } = req.file;
    const photo = { id: album.size + 1, name, bytes, title: String(req.body.title) };
    album.set(photo.id, photo);
    res.status(201).location(`/v1/photos/${photo.id}`).json(photo);
  });
  router.put('/photos/:id/title', (req, res) => {
    const photo = album.get(Number(req.params.id));
    if (photo === undefined) throw new HttpProblem(404, `There is no photo ${req.params.id}.`);
    photo.title = req.body.title;
    res.status(204).end();
  });
  router.get('/search', rateLimit({ limit: 2, standardHeaders: 'draft-7', legacyHeaders: false }), (req, res) => {
    const found = [...album.values()].filter(({ title }) => title.includes(String(req.query['q'])));
    res.json(found);
  });
  router.get('/broken', () => {
    throw new TypeError('the password of the database is 1234');
  });
  return router;
}

/** Pages from long ago, which nobody wants to rewrite. */
export function createOldPages(): Express {
  const app = express();
  app.set('trust proxy', 'loopback');
  app.get('/hello/:name', (req, res) => {
    res.cookie('seen', '1', { httpOnly: true });
    res.send(`<p>${req.params.name} ${req.ip} ${req.originalUrl} ${req.baseUrl}`);
  });
  app.get('/moved', (_req, res) => res.redirect(301, '/v1/photos'));
  return app;
}
