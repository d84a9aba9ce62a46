// Runs the official facilitator, x402Facilitator of @x402/core with the schemes of @x402/evm and a wallet of viem, behind the standard API.
//
//   {"step": "listen", "rpc", "key", "version"} -> {"url"}; it knows the kinds of that x402 version
//   {"step": "seen"}                            -> {"paths"}, what was asked of it so far
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import express from "express";
import { createWalletClient, http, publicActions } from "viem";
import { nonceManager, privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";
import { answerJobs } from "./jobs.mjs";
import { listen } from "./listen.mjs";

const paths = [];

function facilitatorOf({ rpc, key, version }) {
  const account = privateKeyToAccount(key, { nonceManager });
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(rpc), pollingInterval: 50 }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    readContract: (args) => wallet.readContract(args),
    verifyTypedData: (args) => wallet.verifyTypedData(args),
    writeContract: (args) => wallet.writeContract(args),
    sendTransaction: (args) => wallet.sendTransaction(args),
    waitForTransactionReceipt: (args) => wallet.waitForTransactionReceipt(args),
    getCode: (args) => wallet.getCode(args),
  });
  const facilitator = new x402Facilitator();
  if (version === 1) facilitator.registerV1("base-sepolia", new ExactEvmSchemeV1(signer));
  else facilitator.register("eip155:84532", new ExactEvmScheme(signer));
  return facilitator;
}

await answerJobs({
  async listen(job) {
    const facilitator = facilitatorOf(job);
    const app = express();
    app.use(express.json());
    app.use((request, response, next) => {
      paths.push(request.path);
      next();
    });
    app.get("/supported", (request, response) => response.json(facilitator.getSupported()));
    for (const step of ["verify", "settle"]) {
      app.post(`/${step}`, async ({ body }, response) => response.json(await facilitator[step](body.paymentPayload, body.paymentRequirements)));
    }
    return { url: await listen(app) };
  },
  seen: () => ({ paths }),
});
