/**
 * Servers that export a trace of every request, each to a collector in a process of its own, which takes everything.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { hello } from './service.mjs';

const COLLECTOR = `require('http').createServer((req, res) => req.resume().on('end', () => res.setHeader('content-type', 'application/json').end('{}')))
  .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;

/** It ends with this process's group. @returns {Promise<string>} its URL */
async function startCollector() {
  const child = spawn(process.execPath, ['-e', COLLECTOR], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = await once(child.stdout, 'data');
  return `http://127.0.0.1:${String(port).trim()}`;
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  'postern + traces': async (spec) => {
    process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = await startCollector();
    return (await import('./postern.mjs')).contenders['postern'](spec);
  },
  'fastify + OpenTelemetry': async () => {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    const { registerInstrumentations } = await import('@opentelemetry/instrumentation');
    const { HttpInstrumentation } = await import('@opentelemetry/instrumentation-http');
    const { BatchSpanProcessor, NodeTracerProvider } = await import('@opentelemetry/sdk-trace-node');
    const exporter = new OTLPTraceExporter({ url: `${await startCollector()}/v1/traces` });
    const tracerProvider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
    tracerProvider.register();
    registerInstrumentations({ tracerProvider, instrumentations: [new HttpInstrumentation()] });
    // Loaded afterwards: what `require('http')` gives fastify is instrumented by then.
    const { fastify } = await import('fastify');
    const app = fastify();
    app.get('/hello', (request, reply) => reply.send(hello()));
    await app.listen({ host: '127.0.0.1', port: 0 });
    return app.server;
  },
};
