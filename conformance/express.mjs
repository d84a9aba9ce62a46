// Sells with @x402/express, the official middleware of x402 v2, and has payments verified and settled by a facilitator over HTTP.
//
//   {"step": "listen", "facilitator", "token", "payTo", "price"} -> {"url"}
//   {"step": "asked", "path"}                                    -> {"times"}, how often the handler ran for it
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { answerJobs } from "./jobs.mjs";
import { listen } from "./listen.mjs";
import { shop } from "./shop.mjs";

let asked;

await answerJobs({
  async listen({ facilitator, token, payTo, price }) {
    const headers = { Authorization: `Bearer ${token}` };
    const client = new HTTPFacilitatorClient({
      url: facilitator,
      createAuthHeaders: async () => ({ supported: headers, verify: headers, settle: headers }),
    });
    const server = new x402ResourceServer(client).register("eip155:84532", new ExactEvmScheme());
    const accepts = { scheme: "exact", network: "eip155:84532", price, payTo };
    const app = express();
    const upfront = { ...accepts, extra: { paymentFlow: "upfront" } };
    app.use(
      paymentMiddleware(
        {
          "GET /work": { accepts, description: "Work" },
          "GET /broken": { accepts, description: "Broken" },
          "GET /upfront": { accepts: upfront, description: "Work that is paid before it is done" },
        },
        server,
      ),
    );
    asked = shop(app);
    return { url: await listen(app) };
  },
  asked: ({ path }) => ({ times: asked[path] ?? 0 }),
});
