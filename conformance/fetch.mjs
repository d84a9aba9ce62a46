// Calls with @x402/fetch, the official client of x402 v2, in its default settings: no spend control is lifted and no chain node configured.
//
//   {"step": "call", "key", "url", "method", "body", "headers"} -> {"sent", "status", "body", "outcome", "call", "retryAfter", "receipt"}
import { ExactEvmScheme } from "@x402/evm";
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { answerJobs, call, view, watched } from "./jobs.mjs";

await answerJobs({
  call: ({ key, url, ...request }) =>
    call(async (sent) => {
      const pay = wrapFetchWithPaymentFromConfig(watched(sent), {
        schemes: [{ network: "eip155:*", client: new ExactEvmScheme(privateKeyToAccount(key)) }],
      });
      const response = await pay(url, { ...request, signal: AbortSignal.timeout(60_000) });
      const { status, headers } = response;
      return view({ status, headers, body: await response.text() }, "PAYMENT-RESPONSE", decodePaymentResponseHeader);
    }),
});
