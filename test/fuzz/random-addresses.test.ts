/** Random addresses and networks, in every way to write them. */

import { expect, test } from 'vitest';
import { clientAddress, trustNetworks } from '../../src/answer/client-address.js';
import { createRandom, type Random } from '../support/random.js';

/** An address as 128 bits, in one of the ways to write them. */
function spell(bits: bigint, random: Random): string {
  const groups = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(112 - 16 * i)) & 0xffffn));
  const texts = groups.map((group) => group.toString(16).padStart(random.int(5), '0'));
  const dotted = random.int(3) === 0 ? [...groups.slice(6)].map((group) => `${group >> 8}.${group & 255}`)
    .join('.') : undefined;
  if (dotted !== undefined) texts.splice(6, 2, dotted);
  const zeros = groups.slice(0, texts.length - (dotted === undefined ? 0 : 1)).map((group) => (group === 0 ? '0' : 'x'))
    .join('');
  const run = /00+/.exec(zeros);
  const text =
    run === null || random.int(4) === 0
      ? texts.join(':')
      : `${texts.slice(0, run.index).join(':')}::${texts.slice(run.index + run[0].length).join(':')}`;
  return random.int(2) === 0 ? text : text.toUpperCase();
}
const MAPPED = 0xffffn << 32n;
const dotted = (bits: bigint): string => [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.');

test('addresses are compared with networks as numbers, however they are written (CVE-2026-47674)', () => {
  const random = createRandom(24);
  const bitsOf = (count: number): bigint => Array.from({ length: count }, () => BigInt(random.int(2)))
    .reduce((all, bit) => (all << 1n) | bit, 0n);
  for (let round = 0; round < 4000; round += 1) {
    const isV4 = random.int(2) === 0;
    const [width, base] = isV4 ? [32, MAPPED] : [128, 0n];
    const length = random.int(width + 1);
    const network = random.int(3) === 0 && !isV4 ? bitsOf(32) : bitsOf(width);
    const flipped = random.int(width);
    const address = random.int(4) === 0 ? bitsOf(width) : network ^ (1n << BigInt(flipped));
    const inside = length === 0 || (address ^ network) >> BigInt(width - length) === 0n;
    const cidr = `${isV4 ? dotted(network) : spell(network, random)}/${length}`;
    const written = isV4 && random.int(2) === 0 ? dotted(address) : spell(base + address, random);
    const expected = inside ? '9.9.9.9' : written.replace(/^::ffff:(?=\d+\.)/i, '');
    const request = { socket: { remoteAddress: written }, headers: { 'x-forwarded-for': '9.9.9.9' } };
    expect(clientAddress(request, trustNetworks([cidr])), `${written} in ${cidr}`).toBe(expected);
  }
});
