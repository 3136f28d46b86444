/**
 * Calls a service and then does nothing: its kept-alive connection must not keep it alive. Argument: the service's URL.
 */

import { Postern } from '../../dist/index.js';

const app = new Postern('caller', { settings: { SERVICE_CONNECTIONS: [`billing=${process.argv[2]}`] } });
const { status } = await app.service('billing').get('/');
process.send(status);
process.disconnect();
