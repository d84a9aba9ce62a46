// Does with the official extensions what a client does: reads one JSON object from standard input, prints one.
//
//   MARKET_CALLER_KEY=0x… node extend.mjs sign-in          {"url", "info"}   -> {"header"}, SIGN-IN-WITH-X for a page of ours
//   node extend.mjs identify                               {"challenge"}     -> {"extensions", "id"}, ours with a payment-identifier in them
//   node extend.mjs receipt                                {"challenge", "response", "payer"}, values of PAYMENT-REQUIRED and PAYMENT-RESPONSE
//                                                                            -> {"offer", "accepts", "receipt", "matches"}: who signed which, and whether they fit
import { decodePaymentRequiredHeader } from "@x402/core/http";
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureEIP712,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureEIP712,
} from "@x402/extensions/offer-receipt";
import {
  appendPaymentIdentifierToExtensions,
  extractAndValidatePaymentIdentifier,
} from "@x402/extensions/payment-identifier";
import { createSIWxPayload, encodeSIWxHeader } from "@x402/extensions/sign-in-with-x";
import { text } from "node:stream/consumers";
import { privateKeyToAccount } from "viem/accounts";

const input = JSON.parse(await text(process.stdin));
const steps = {
  "sign-in": async () => {
    const account = privateKeyToAccount(process.env.MARKET_CALLER_KEY);
    return { header: encodeSIWxHeader(await createSIWxPayload(input.info, account, input.url)) };
  },
  identify: async () => {
    const { extensions } = decodePaymentRequiredHeader(input.challenge);
    appendPaymentIdentifierToExtensions(extensions);
    const { id, validation } = extractAndValidatePaymentIdentifier({ extensions });
    if (!validation.valid) throw new Error(validation.errors.join("; "));
    return { extensions, id };
  },
  receipt: async () => {
    const required = decodePaymentRequiredHeader(input.challenge);
    const [offer] = decodeSignedOffers(extractOffersFromPaymentRequired(required));
    const receipt = extractReceiptFromResponse(new Response(null, { headers: { "PAYMENT-RESPONSE": input.response } }));
    return {
      offer: (await verifyOfferSignatureEIP712(offer.signedOffer)).signer,
      accepts: findAcceptsObjectFromSignedOffer(offer, required.accepts)?.amount,
      receipt: (await verifyReceiptSignatureEIP712(receipt)).signer,
      matches: verifyReceiptMatchesOffer(receipt, offer, [input.payer]),
    };
  },
};
console.log(JSON.stringify(await steps[process.argv[2]]()));
