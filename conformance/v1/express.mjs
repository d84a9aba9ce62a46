// Sells with x402-express, the official middleware of x402 v1. The same jobs and answers as ../express.mjs.
import express from "express";
import { paymentMiddleware } from "x402-express";
import { answerJobs } from "../jobs.mjs";
import { listen } from "../listen.mjs";
import { shop } from "../shop.mjs";

let asked;

await answerJobs({
  async listen({ facilitator, token, payTo, price }) {
    const headers = { Authorization: `Bearer ${token}` };
    const route = { price, network: "base-sepolia" };
    const app = express();
    app.use(
      paymentMiddleware(
        payTo,
        { "GET /work": route, "GET /broken": route },
        { url: facilitator, createAuthHeaders: async () => ({ supported: headers, verify: headers, settle: headers }) },
      ),
    );
    asked = shop(app);
    return { url: await listen(app) };
  },
  asked: ({ path }) => ({ times: asked[path] ?? 0 }),
});
