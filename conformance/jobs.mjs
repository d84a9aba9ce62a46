// What every script here shares: it is a process that answers jobs, so that Node starts once and not once a case.
//
// Standard input brings one JSON object a line, {"id", "step", …}; standard output answers each by {"id", …result} or {"id", "error"}, in
// the order in which they are done. The process ends with its input.
import { createInterface } from "node:readline";

// Whatever a package prints goes to standard error: standard output is the answers'.
console.log = console.info = console.error;

// The packages need nothing but the server that they are sent to. A request that would leave this machine, to a public chain node say, fails.
const reach = globalThis.fetch;
globalThis.fetch = async (input, init) => {
  const { hostname } = new URL(input instanceof Request ? input.url : input);
  if (hostname !== "127.0.0.1") throw new Error(`a request would leave this machine, for ${hostname}`);
  return reach(input, init);
};

export async function answerJobs(own) {
  const steps = { send, ...own };
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, step, ...job } = JSON.parse(line);
    void Promise.resolve()
      .then(() => steps[step](job))
      .catch(told)
      .then((result) => process.stdout.write(JSON.stringify({ id, ...result }) + "\n"));
  }
  process.exit(0);
}

const told = (error) => ({ error: error instanceof Error ? error.message : String(error) });

// call is one call by a client: what it sent, with the payment header of each request, and what it got or threw.
export async function call(client) {
  const sent = [];
  try {
    return { sent, ...(await client(sent)) };
  } catch (error) {
    return { sent, ...told(error) };
  }
}

// note keeps which payment a request carried.
export function note(sent, headers) {
  const payment = {};
  for (const name of ["PAYMENT-SIGNATURE", "X-PAYMENT"]) if (headers.has(name)) payment[name] = headers.get(name);
  sent.push(payment);
}

// watched is fetch, noting what is sent. It is what a client gets to send with.
export function watched(sent) {
  return (input, init) => {
    note(sent, new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined)));
    return fetch(input, init);
  };
}

// view is what a client sees of an answer. decode is the client's own reading of the receipt.
export function view({ status, headers, body }, receiptName, decode) {
  const receipt = receiptName && headers.get(receiptName);
  return {
    status,
    body,
    outcome: headers.get("Market-Outcome") ?? "",
    call: headers.get("Market-Call") ?? "",
    retryAfter: headers.get("Retry-After") ?? "",
    receipt: receipt ? decode(receipt) : null,
    reason: status === 402 ? reasonOf(headers, body) : "",
  };
}

// send is one request without a client around it, which every script can make. Its receipt is not looked for: only clients read one.
async function send({ url, ...request }) {
  const response = await fetch(url, request);
  return view({ status: response.status, headers: response.headers, body: await response.text() });
}

// reasonOf is why a payment is asked for: v2 says it in a header, v1 in the body.
function reasonOf(headers, body) {
  const required = headers.get("PAYMENT-REQUIRED");
  return JSON.parse(required ? Buffer.from(required, "base64").toString() : body).error;
}
