// Calls with x402-fetch, the official client of x402 v1, in its default settings. The same jobs and answers as ../fetch.mjs.
import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from "x402-fetch";
import { answerJobs, call, view, watched } from "../jobs.mjs";

await answerJobs({
  call: ({ key, url, ...request }) =>
    call(async (sent) => {
      const pay = wrapFetchWithPayment(watched(sent), await createSigner("base-sepolia", key));
      const response = await pay(url, { ...request, signal: AbortSignal.timeout(60_000) });
      const { status, headers } = response;
      return view({ status, headers, body: await response.text() }, "X-PAYMENT-RESPONSE", decodeXPaymentResponse);
    }),
});
