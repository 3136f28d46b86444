/**
 * Options: a name that does not exist and a value of the wrong type are refused where they are given, never taken for a
 * default.
 */

import { expect, test } from 'vitest';
import {
  ApiError, BadRequest, defineEndpoint, defineErrorCodes, HttpError, InvalidRequest, Postern, reply, TooManyRequests,
  type PosternOptions,
} from 'postern';
import { createApp } from '../support/serve.js';

const make = (options: object): Postern => new Postern('users', { logger: false, ...options } as PosternOptions);

test.for<[object, string]>([
  [{ bodylimit: 1 }, 'unknown option "bodylimit" of new Postern(); did you mean "bodyLimit"?'],
  [{ requestTimeOut: 1 }, 'unknown option "requestTimeOut" of new Postern(); did you mean "requestTimeout"?'],
  [{ bodyLimit: '10 MB' }, 'bodyLimit of new Postern() is "10 MB"; give a whole number of 0 or more'],
  [{ bodyLimit: null }, 'bodyLimit of new Postern() is null; give a whole number of 0 or more'],
  [{ attachMonitorEndpoints: 'false' }, 'attachMonitorEndpoints of new Postern() is "false"; give true or false'],
  [{ attachMonitorEndpoints: 0 }, 'attachMonitorEndpoints of new Postern() is 0; give true or false'],
  [{ version: 5 }, 'version of new Postern() is 5; give a string'],
  [{ version: Symbol('v') }, 'version of new Postern() is Symbol(v); give a string'],
  [{ trustProxy: '10.0.0.0/8' }, 'trustProxy of new Postern() is "10.0.0.0/8"; give an array'],
  [{ trustProxy: true }, 'trustProxy of new Postern() is true; give an array'],
  [{ maxConnections: 0.5 }, 'maxConnections of new Postern() is 0.5; give a whole number of 0 or more'],
  [{ requestTimeout: 2 ** 31 },
    'requestTimeout of new Postern() is 2147483648; give a whole number from 0 to 2147483647'],
  [{ monitor: 9100 }, 'monitor of new Postern() is 9100; give an object, { port: 9100 }'],
  [{ settings: 'billing' }, 'settings of new Postern() is "billing"; give an object'],
  [{ settings: { SERVICE_CONECTIONS: [] } },
    'unknown option "SERVICE_CONECTIONS" of settings; did you mean "SERVICE_CONNECTIONS"?'],
  [{ settings: { SERVICE_CONNECTIONS: 'billing' } }, 'SERVICE_CONNECTIONS of settings is "billing"; give an array'],
  [{ settings: { SERVICE_URL_TEMPLATE: Object.create(null) } },
    'SERVICE_URL_TEMPLATE of settings is an object; give a string'],
  [{ loadShedding: true }, 'loadShedding of new Postern() is true; give false or an object'],
  [{ loadShedding: { maxMemory: 50 } },
    'unknown option "maxMemory" of loadShedding; it has observe, maxEventLoopDelay, maxMemoryPercent, retryAfter'],
  [{ loadShedding: { maxMemoryPercent: 1000 } },
    'maxMemoryPercent of loadShedding is 1000; give a whole number from 1 to 100'],
  [{ loadShedding: { maxEventLoopDelay: 0 } },
    'maxEventLoopDelay of loadShedding is 0; give a whole number of 1 or more'],
])('new Postern with %j is refused: %s', ([options, message]) => {
  expect(() => make(options)).toThrow(new TypeError(message));
});

test.for([1, 100, 0])('maxPipelinedRequests is an unknown option, even as %i', (maxPipelinedRequests) => {
  const message = /^unknown option "maxPipelinedRequests" of new Postern\(\); (?:did you mean|it has) /;
  expect(() => make({ maxPipelinedRequests })).toThrow(TypeError);
  expect(() => make({ maxPipelinedRequests })).toThrow(message);
});

test('options that are undefined are options that were left out', async () => {
  const app = make({ bodyLimit: undefined, attachMonitorEndpoints: undefined, loadShedding: undefined });
  expect((await app.request('/users/ping/')).status).toBe(200);
});

test.for<[string, (app: Postern, options: never) => unknown, unknown, string]>([
  ['listen', (app, options) => app.listen(options), { prot: 0 },
    'unknown option "prot" of listen(); did you mean "port"?'],
  ['listen', (app, options) => app.listen(options), { port: '8000' },
    'port of listen() is "8000"; give a whole number from 0 to 65535'],
  ['listen', (app, options) => app.listen(options), { port: 65_536 },
    'port of listen() is 65536; give a whole number from 0 to 65535'],
  ['listen', (app, options) => app.listen(options), { port: 0, host: 127 }, 'host of listen() is 127; give a string'],
  ['listen', (app, options) => app.listen(options), 8000, 'the options of listen() are 8000; give an object'],
  ['close', (app, options) => app.close(options), { timout: 1 },
    'unknown option "timout" of close(); did you mean "timeout"?'],
  ['close', (app, options) => app.close(options), { delay: '5' }, 'delay of close() is "5"; give ms, 0 or more'],
  ['close', (app, options) => app.close(options), { timeout: NaN }, 'timeout of close() is NaN; give ms, 0 or more'],
  ['run', (app, options) => app.run(options), { grace: 1 },
    'unknown option "grace" of run(); it has port, host, scope, path, fd, delay, timeout'],
  ['run', (app, options) => app.run(options), { port: 0, timeout: -1 }, 'timeout of run() is -1; give ms, 0 or more'],
])('%s(%3$s)', async ([, act, options, message]) => {
  const app = createApp();
  await expect(Promise.resolve().then(() => act(app, options as never))).rejects.toThrow(new TypeError(message));
  expect(app.server.listening).toBe(false);
  expect((await app.request('/users/health/')).status, 'a refused call changes nothing').toBe(200);
});

const getUser = defineEndpoint('GET', '/users/:id');
test.for<[() => unknown, string | RegExp]>([
  [() => createApp().health.check('db', () => true, { timeuot: 5 } as never),
    'unknown option "timeuot" of health check "db"; did you mean "timeout"?'],
  [() => createApp().health.check('db', () => true, { timeout: '5' } as never),
    'timeout of health check "db" is "5"; give ms, more than 0 and at most 2147483647'],
  [() => createApp().onClose(Promise.resolve() as never), 'onClose() got an object; give a function: () => pool.end()'],
  [() => createApp().track((async () => undefined) as never),
    'track() got a function; give a promise: call the function that returns one'],
  [() => make({ errorCodes: [{ a: { name: 'a', value: 1 } }] }),
    'errorCodes of new Postern() is an array; give a list of results of defineErrorCodes'],
  ...[
    [{ gone: 1 }, { lost: 1 }, 'errorCodes has gone (1) and lost (1); change one of them'],
    [{ gone: 1 }, { gone: 2 }, 'errorCodes has gone (1) and gone (2); change one of them'],
    [{ mine: 999_400 }, {}, "errorCodes has mine (999400), whose name or value is the framework's own; change it"],
    [{}, { framework_timeout: 5 },
      "errorCodes has framework_timeout (5), whose name or value is the framework's own; change it"],
  ].map(([a, b, message]): [() => unknown, string] => [
    () =>
      make({
        errorCodes: [defineErrorCodes(a as Record<string, number>), defineErrorCodes(b as Record<string, number>)],
      }),
    message as string,
  ]),
  [() => new ApiError('x', { status: 404 } as never),
    'unknown option "status" of new ApiError(); did you mean "statusCode"?'],
  [() => new BadRequest('x', { message: 5 } as never), 'message of new BadRequest() is 5; give a string'],
  [() => new BadRequest('x', { headers: [['a', 'b']] } as never),
    "headers of new BadRequest() is an array; give an object of strings, { allow: 'GET' }"],
  [() => new BadRequest('x', { headers: new Headers() } as never),
    "headers of new BadRequest() is an object; give an object of strings, { allow: 'GET' }"],
  [() => new BadRequest('x', { headers: { 'retry-after': 5 } } as never),
    "headers of new BadRequest() is an object; give an object of strings, { allow: 'GET' }"],
  [() => new BadRequest('x', null as never), 'the options of new BadRequest() are null; give an object'],
  [() => new TooManyRequests('x', { retryafter: 5 } as never),
    'unknown option "retryafter" of new TooManyRequests(); did you mean "retryAfter"?'],
  [() => new InvalidRequest('x', { finding: [] } as never),
    'unknown option "finding" of new InvalidRequest(); did you mean "findings"?'],
  [() => new InvalidRequest('x', { findings: 5 } as never), 'findings of new InvalidRequest() is 5; give an array'],
  [() => new InvalidRequest('x', null as never), 'the options of new InvalidRequest() are null; give an object'],
  ...[null, 5, []].map((own): [() => unknown, string] => [
    () => createApp().implement(getUser, () => 'ok', own as never),
    `the options of implement() of GET /users/:id are ${Array.isArray(own) ? 'an array' : own}; give an object`,
  ]),
  [() => createApp().implement(getUser, () => 'ok', { bodylimit: 1 } as never),
    'unknown option "bodylimit" of implement() of GET /users/:id; did you mean "bodyLimit"?'],
  [() => createApp().implement(getUser, () => 'ok', { params: {} } as never),
    /^unknown option "params" of implement\(\) of GET \/users\/:id; it has public, .* operationId$/],
  [() => new HttpError(400, 'x', { errorCode: 5 } as never),
    'unknown option "errorCode" of new HttpError(); it has headers, cause'],
  [() => reply('x', { statusCode: 201 } as never), 'unknown option "statusCode" of reply(); did you mean "status"?'],
  [() => reply('x', { status: '201' } as never),
    'status of reply() is "201"; give a status from 200 to 599, such as 201'],
  [() => reply('x', 201 as never), 'the options of reply() are 201; give an object'],
])('%s is refused: %s', ([act, message]) => {
  expect(act).toThrow(message instanceof RegExp ? message : new TypeError(message));
});
