/**
 * Koa with @koa/router and @koa/bodyparser.
 */

import { createServer } from 'node:http';
import { bodyParser } from '@koa/bodyparser';
import { Router } from '@koa/router';
import Koa from 'koa';
import { ERROR_BODY, fail, hello, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  koa({ resources }) {
    const app = new Koa();
    const router = new Router();
    app.use(async (ctx, next) => {
      try {
        await next();
        if (ctx.body === undefined) {
          ctx.status = 404;
          ctx.body = NOT_FOUND_BODY;
        }
      } catch {
        ctx.status = 500;
        ctx.body = ERROR_BODY;
      }
    });
    router.get('/hello', (ctx) => {
      ctx.body = hello();
    });
    router.post('/echo', bodyParser(), (ctx) => {
      ctx.body = ctx.request.body;
    });
    router.get('/fail', () => fail());
    for (const resource of resourceNames(resources)) {
      const list = (ctx) => {
        ctx.body = { resource };
      };
      const one = (ctx) => {
        ctx.body = { id: ctx.params.id };
      };
      router.get(`/v1/${resource}`, list);
      router.post(`/v1/${resource}`, list);
      router.get(`/v1/${resource}/:id`, one);
      router.get(`/v1/${resource}/:id/parts`, one);
      router.get(`/v1/${resource}/:id/parts/:part`, (ctx) => {
        ctx.body = { id: ctx.params.id, part: ctx.params.part };
      });
    }
    app.use(router.routes());
    return listening(createServer(app.callback()));
  },
};
