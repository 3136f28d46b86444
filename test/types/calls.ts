/** Types of calls of other services: compiled, never run. */

import { Postern } from 'postern';

const billing = new Postern('users').service('billing');

export const calls = [
  billing.post('/1', {
    body: new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(1));
        controller.close();
      },
    }),
  }),
  billing.fetch('/2', { body: new ReadableStream({ pull: (controller) => controller.close() }) }),
  billing.put('/3', { body: new ReadableStream<Uint8Array>() }),
  billing.put('/4', { body: new Blob([]).stream() }),
  // @ts-expect-error: neither bytes nor text
  billing.put('/5', { body: new ReadableStream<number>() }),
];
