// Signs in with the wallet of this browser (EIP-1193). It fills in the forms that stand on the page and sends them: without it, people do so by hand.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const wallet = window.ethereum && typeof window.ethereum.request === "function" ? window.ethereum : null;
  const same = (a, b) => typeof a === "string" && typeof b === "string" && a.toLowerCase() === b.toLowerCase();

  const tell = (words) => {
    const at = byId("wallet-error");
    at.textContent = words;
    at.hidden = false;
  };

  // What a wallet says may be anything: its code is what counts, and of its words a few are shown, as text.
  const why = (error) => {
    const code = error && error.code;
    if (code === 4001) return "You refused it in the wallet. Nothing was signed.";
    if (code === -32002) return "The wallet waits for you already: open it, and answer there.";
    if (code === 4100) return "The wallet did not allow it: unlock it, and let this site see the account.";
    const words = error && typeof error.message === "string" ? error.message.slice(0, 200) : "";
    return "The wallet did not do it" + (words ? ": " + words : "") + ".";
  };

  const during = (button, work) => async () => {
    button.disabled = true;
    byId("wallet-error").hidden = true;
    try {
      await work();
    } catch (error) {
      tell(why(error));
      button.disabled = false;
    }
  };

  // The first page: the wallet says which account, and our server makes the text for it.
  const begin = byId("wallet");
  if (begin) {
    if (!wallet) {
      byId("wallet-none").textContent = "No wallet was found in this browser. Install one, open this page in the browser of your wallet, or use the way below.";
      return;
    }
    byId("wallet-none").textContent = "Your wallet shows the text before you sign it.";
    begin.disabled = false;
    begin.addEventListener("click", during(begin, async () => {
      const accounts = await wallet.request({ method: "eth_requestAccounts" });
      if (!Array.isArray(accounts) || typeof accounts[0] !== "string") {
        tell("The wallet has no account to sign in with.");
        begin.disabled = false;
        return;
      }
      const form = byId("challenge");
      form.elements.address.value = accounts[0];
      form.elements.wallet.value = "yes";
      form.submit();
    }));
    return;
  }

  // The second page: the wallet signs exactly the text that is shown.
  const sign = byId("sign");
  const form = byId("session");
  if (!sign || !form || !wallet) return;
  byId("wallet-row").hidden = false;
  const run = during(sign, async () => {
    const accounts = await wallet.request({ method: "eth_requestAccounts" });
    const address = form.dataset.address;
    if (!Array.isArray(accounts) || !accounts.some((a) => same(a, address))) {
      tell("The wallet is at another account" + (accounts && accounts[0] ? " (" + String(accounts[0]).slice(0, 42) + ")" : "") + ". Choose " + address + " in it, or begin anew.");
      sign.disabled = false;
      return;
    }
    const bytes = new TextEncoder().encode(byId("message").textContent);
    const hex = "0x" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
    const signature = await wallet.request({ method: "personal_sign", params: [hex, address] });
    form.elements.signature.value = signature;
    form.submit();
  });
  sign.addEventListener("click", run);
  if (form.dataset.wallet === "yes") run();
})();
