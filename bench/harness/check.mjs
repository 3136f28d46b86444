/**
 * Checks that a server answers as it should, before anything is measured.
 */

import { Agent, request } from 'node:http';
import { isDeepStrictEqual } from 'node:util';

/** Of many requests that look alike this many are checked. */
const SAMPLE = 50;

/**
 * @param {string} url
 * @param {readonly import('../scenarios/requests.mjs').Request[]} requests
 * @throws {Error} for a wrong status, body or content type
 */
export async function check(url, requests) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (let index = 0; index < requests.length; index += Math.max(1, Math.floor(requests.length / SAMPLE)))
      await checkOne(url, requests[index], agent);
  } finally {
    agent.destroy();
  }
}

async function checkOne(url, { method, path, body, status, json }, agent) {
  const response = await send(url + path, method, body, agent);
  const told = `${method} ${path} answered ${response.status} ${response.type} ${response.text.slice(0, 200)}`;
  if (response.status !== status) throw new Error(`${told}, and not ${status}`);
  if (!/^application\/json\b/.test(response.type)) throw new Error(`${told}, and not JSON`);
  if (!isDeepStrictEqual(parse(response.text), json))
    throw new Error(`${told}, and not ${JSON.stringify(json).slice(0, 200)}`);
}

function send(url, method, body, agent) {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request(url, { method, headers, agent, timeout: 10_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response
        .on('error', reject)
        .on('end', () => resolve({ status: response.statusCode, type: response.headers['content-type'] ?? '', text }));
    });
    sent
      .on('error', reject)
      .on('timeout', () => sent.destroy(new Error(`${method} ${url} was not answered within 10 s`)));
    sent.end(body);
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
