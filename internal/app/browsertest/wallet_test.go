package browsertest

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"market/internal/app/apptest"
	"market/internal/chain"
)

// walletScript is a wallet of the browser (EIP-1193) with one account. It shows the test what it is to sign, and waits for its word.
const walletScript = `window.ethereum = {request: async ({method, params}) => {
	if (method === 'eth_requestAccounts') {
		if (window.name === 'refuses') throw Object.assign(new Error('no'), {code: 4001})
		return [window.name === 'elsewhere' ? '0x00000000000000000000000000000000000000aa' : '%s']
	}
	if (method === 'personal_sign') return new Promise((yes, no) => {
		window.walletShows = params[0]
		window.walletSays = yes
		window.walletRefuses = () => no(Object.assign(new Error('<b>no</b>'), {code: 4001}))
	})
	throw Object.assign(new Error('this wallet does not do ' + method), {code: 4200})
}}`

// carryWallet puts a wallet into every page that the tab opens from now on.
func (b *tab) carryWallet(key chain.Key) {
	b.t.Helper()
	do(b, "put a wallet into the browser", chromedp.Action[chromedp.Void](func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: fmt.Sprintf(walletScript, strings.ToLower(key.Address().Hex()))})
		return chromedp.Void{}, err
	}))
}

// shownByWallet waits until the wallet is to sign, and returns the text.
func (b *tab) shownByWallet() string {
	b.t.Helper()
	var text []byte
	apptest.Eventually(b.t, "the wallet is asked to sign", func() bool {
		shows, err := b.evaluate(`window.walletShows || ''`)
		if err != nil || shows == "" {
			return false
		}
		text, err = hex.DecodeString(strings.TrimPrefix(shows, "0x"))
		return err == nil
	})
	return string(text)
}

// evaluate asks the page that is open; between two pages there may be none.
func (b *tab) evaluate(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](expression))
}

// agree has the wallet sign what it shows.
func (b *tab) agree(key chain.Key) {
	b.t.Helper()
	signature := apptest.SignText(b.t, key, b.shownByWallet())
	do(b, "sign", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.walletSays('%s'); void 0`, signature)))
}

// withoutScripts keeps the tab from running the scripts of pages; those of the test run all the same.
func (b *tab) withoutScripts() {
	b.t.Helper()
	do(b, "turn scripts off", chromedp.Action[chromedp.Void](func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	}))
}

// enterAs signs in with the wallet that the tab carries.
func (b *tab) enterAs(url string, key chain.Key) {
	b.t.Helper()
	b.open(url + "/account")
	do(b, "sign in with the wallet", chromedp.Click("#wallet"))
	b.agree(key)
	b.reads("Sign out")
}
