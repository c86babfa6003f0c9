#!/usr/bin/env node
// Solves the challenge of CHALLENGE=pow: reads the answer `challenge_required` on stdin, prints the body of the next request.
//
//   curl -s -X POST -H 'X-Buyer-Id: ann' localhost:8080/v1/sales/tickets/tokens | node docs/examples/solve-pow.mjs
//
// Needs nothing but Node. A page in a browser does the same in a worker with any SHA-256 of its own.
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';

const { seed, bits } = challengeIn(await text(process.stdin));
let solution = 0;
while (!beginsWithZeros(createHash('sha256').update(`${seed}.${solution}`).digest())) solution++;
console.log(JSON.stringify({ answer: { seed, solution: String(solution) } }));

function challengeIn(input) {
  try {
    const challenge = JSON.parse(input)?.challenge;
    if (challenge?.type === 'proof-of-work') return challenge;
  } catch {
    // No JSON: most likely nobody answered, or an answer of another program.
  }
  const found = input.trim() === '' ? 'nothing' : input.trim().slice(0, 200);
  console.error(`There is no challenge of proof of work on stdin, but: ${found}`);
  process.exit(1);
}

function beginsWithZeros(hash) {
  return hash.readUInt32BE(0) >>> (32 - bits) === 0;
}
