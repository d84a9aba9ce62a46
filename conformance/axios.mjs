// Calls with @x402/axios in its default settings. The same jobs and answers as fetch.mjs.
import { ExactEvmScheme } from "@x402/evm";
import { decodePaymentResponseHeader, wrapAxiosWithPaymentFromConfig } from "@x402/axios";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";
import { answerJobs, call, note, view } from "./jobs.mjs";

await answerJobs({
  call: ({ key, body, ...request }) =>
    call(async (sent) => {
      const plain = axios.create();
      plain.interceptors.request.use((config) => {
        note(sent, config.headers);
        return config;
      });
      const api = wrapAxiosWithPaymentFromConfig(plain, {
        schemes: [{ network: "eip155:*", client: new ExactEvmScheme(privateKeyToAccount(key)) }],
      });
      // axios throws what is not 2xx; the answer is in the error. That of an answer that broke off has one, too, and a good status.
      const response = await api.request({ ...request, data: body, timeout: 60_000 }).catch((error) => {
        if (error.response?.status >= 300) return error.response;
        throw error;
      });
      const { status, data } = response;
      const text = typeof data === "string" ? data : JSON.stringify(data);
      return view({ status, headers: new Headers(response.headers), body: text }, "PAYMENT-RESPONSE", decodePaymentResponseHeader);
    }),
});
