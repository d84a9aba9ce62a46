// Pays for one call with the official v2 client, @x402/fetch, in its default settings: no spend control is lifted and no RPC is
// configured. Prints one JSON object with what the client saw.
//
//   MARKET_CALLER_KEY=0x… node pay.mjs URL [METHOD] [BODY]
import { ExactEvmScheme } from "@x402/evm";
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const [url, method = "GET", body] = process.argv.slice(2);
const account = privateKeyToAccount(process.env.MARKET_CALLER_KEY);
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: "eip155:*", client: new ExactEvmScheme(account) }],
});

const response = await pay(url, {
  method,
  body,
  headers: body === undefined ? {} : { "Content-Type": "application/json" },
  signal: AbortSignal.timeout(60_000),
});
const receipt = response.headers.get("PAYMENT-RESPONSE");
console.log(
  JSON.stringify({
    payer: account.address,
    status: response.status,
    outcome: response.headers.get("Market-Outcome"),
    call: response.headers.get("Market-Call"),
    receipt: receipt === null ? null : decodePaymentResponseHeader(receipt),
    body: await response.text(),
  }),
);
