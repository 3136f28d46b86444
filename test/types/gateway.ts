/** The exporters take one table with its options, or a list of services. Compiled, never run. */

import { Postern } from 'postern';
import { toGatewayApi, toNginx, type GatewayService } from 'postern/gateway';

const { router } = new Postern('users');
const services: GatewayService[] = [{ router, service: 'users', upstream: ['http://a', 'http://b'], prefix: '/users' }];

const text: string = toNginx(router, {
  service: 'users',
  upstream: 'http://a',
  hosts: ['a.example'],
  tls: { certificate: 'a.pem', key: 'a.key' },
});
toNginx(services);
toNginx(services, { listen: '*:80', include: 'site.conf' });
toGatewayApi(services, { gateway: 'public' });
void text;

// @ts-expect-error one table needs the options of its service
toNginx(router);
// @ts-expect-error a service has a name
toNginx(router, { upstream: 'http://a' });
// @ts-expect-error a prefix is for a service of a list
toNginx(router, { service: 'users', upstream: 'http://a', prefix: '/users' });
// @ts-expect-error a list has the names of its services
toNginx(services, { service: 'users' });
// @ts-expect-error routes attach to a Gateway
toGatewayApi(services);
// @ts-expect-error a key belongs to the certificate
toNginx(services, { tls: { certificate: 'a.pem' } });
