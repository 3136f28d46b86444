import { expect, test } from 'vitest';
import { isServiceName, serviceUrlsOf, parseSettings, type SettingsOptions } from '../../src/mesh/settings.js';

const connections = (options: SettingsOptions, env: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(serviceUrlsOf(parseSettings(options, env)));

test('without anything there are no connections', () => {
  expect(parseSettings({}, {})).toEqual({
    SERVICE_CONNECTIONS: [],
    REQUIRED_SERVICE_CONNECTIONS: [],
    SERVICE_URL_TEMPLATE: 'http://{service}:8000',
  });
});

test('both lists are merged without duplicates, bare names from the template', () => {
  const options = {
    SERVICE_CONNECTIONS: ['billing', 'mail=http://10.0.0.7:8080'],
    REQUIRED_SERVICE_CONNECTIONS: ['auth', 'billing'],
  };
  expect(connections(options)).toEqual({
    billing: 'http://billing:8000',
    mail: 'http://10.0.0.7:8080',
    auth: 'http://auth:8000',
  });
});

test('an option beats the environment variable of its name, an empty list included', () => {
  const env = {
    SERVICE_CONNECTIONS: 'a,b',
    REQUIRED_SERVICE_CONNECTIONS: 'c',
    SERVICE_URL_TEMPLATE: 'https://{service}.example',
  };
  expect(connections({}, env)).toEqual({ a: 'https://a.example', b: 'https://b.example', c: 'https://c.example' });
  expect(connections({ SERVICE_CONNECTIONS: [], SERVICE_URL_TEMPLATE: 'http://gateway/{service}/' }, env))
    .toEqual({ c: 'http://gateway/c' });
});

test('the environment form takes URLs, spaces around entries and empty entries', () => {
  expect(connections({}, { SERVICE_CONNECTIONS: ' billing , mail=http://10.0.0.7:8080/, ' }))
    .toEqual({ billing: 'http://billing:8000', mail: 'http://10.0.0.7:8080' });
  expect(connections({}, { SERVICE_CONNECTIONS: '', SERVICE_URL_TEMPLATE: '' })).toEqual({});
});

test('a URL beats a bare mention of the same service, whichever comes first', () => {
  expect(
    connections({
      SERVICE_CONNECTIONS: ['a', 'b=http://b.test'],
      REQUIRED_SERVICE_CONNECTIONS: ['a=http://a.test/base/', 'b'],
    }),
  ).toEqual({ a: 'http://a.test/base', b: 'http://b.test' });
});

test('two spellings of one URL are one URL', () => {
  expect(
    connections({ SERVICE_CONNECTIONS: ['a=http://A.test:80/'], REQUIRED_SERVICE_CONNECTIONS: ['a=http://a.test'] }),
  ).toEqual({ a: 'http://a.test' });
});

test('settings are frozen', () => {
  const settings = parseSettings({ SERVICE_CONNECTIONS: ['a', 'a'] }, {});
  expect(settings.SERVICE_CONNECTIONS).toEqual(['a']);
  expect(Object.isFrozen(settings) && Object.isFrozen(settings.SERVICE_CONNECTIONS)).toBe(true);
});

test('__proto__ is a service like any other', () => {
  expect(serviceUrlsOf(parseSettings({ SERVICE_CONNECTIONS: ['__proto__', 'constructor'] }, {})).get('constructor'))
    .toBe('http://constructor:8000');
});

const list = (...entries: string[]): SettingsOptions => ({ SERVICE_CONNECTIONS: entries });
const wrong: { options: unknown; says: RegExp }[] = [
  { options: list('a=http://a.test', 'a=http://b.test'), says: /"a" has the URLs http:\/\/a.test and http:\/\/b.test/ },
  { options: { SERVICE_CONNECTIONS: ['a=http://a.test'], REQUIRED_SERVICE_CONNECTIONS: ['a=http://a.test:81'] },
    says: /has the URLs/ },
  { options: list(''), says: /service name ""/ },
  { options: list('a b'), says: /service name "a b"/ },
  { options: list('a/b'), says: /service name "a\/b"/ },
  { options: list('.'), says: /service name/ },
  { options: list('..=http://a.test'), says: /service name "\.\."/ },
  { options: list('=http://a.test'), says: /service name ""/ },
  { options: list('é'), says: /service name/ },
  { options: list('a='), says: /is not a URL/ },
  { options: list('a=10.0.0.7:8080'), says: /"10\.0\.0\.7:8080" is not a URL of a service; use http: or https:/ },
  { options: list('a=localhost:3000'), says: /"localhost:3000" is not a URL of a service; use http: or https:/ },
  { options: list('a=ftp://a.test'), says: /use http: or https:/ },
  { options: list('a=http://user:secret@a.test'), says: /credentials/ },
  { options: list('a=http://a.test/?x=1'), says: /query or fragment/ },
  { options: list('a=http://a.test/#x'), says: /query or fragment/ },
  { options: list('7'), says: /read as the address 0\.0\.0\.7/ },
  { options: { SERVICE_CONNECTIONS: 'a,b' }, says: /"a,b"; give an array/ },
  { options: { SERVICE_CONNECTIONS: [7] }, says: /has the entry 7/ },
  { options: { SERVICE_URL_TEMPLATE: 'http://billing:8000' }, says: /\{service\}/ },
  { options: { SERVICE_URL_TEMPLATE: '{service}:8000' }, says: /SERVICE_URL_TEMPLATE/ },
  { options: { SERVICE_URL_TEMPLATE: 'http://host:{service}' }, says: /is not a URL/ },
  { options: { SERVICE_URL_TEMPLATE: 8000 }, says: /SERVICE_URL_TEMPLATE of settings is 8000/ },
];
test.for(wrong)('$options throws', ({ options, says }) => {
  expect(() => parseSettings(options as SettingsOptions, {})).toThrow(TypeError);
  expect(() => parseSettings(options as SettingsOptions, {})).toThrow(says);
});

test.for(['a', 'A-b_c.d~9', '...', '-'])('%j is a service name', (name) => expect(isServiceName(name)).toBe(true));
test.for(['', '.', '..', 'a/b', 'a%20', 'a\n', 7, undefined])('%j is no service name', (name) =>
  expect(isServiceName(name)).toBe(false),
);
