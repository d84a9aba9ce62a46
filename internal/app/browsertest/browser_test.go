package browsertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// patience bounds one step in the browser: a machine that does other things takes its time.
const patience = 30 * time.Second

// browserNames are where a Chromium may be.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

func browserPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROME_BIN"); path != "" {
		return path
	}
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("there is no browser: none of %v; scripts/setup test installs one", browserNames)
	return ""
}

// A tab is one browser with one page open.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps its browser in it
}

// openTab starts a browser that ends with the test.
func openTab(t *testing.T) *tab {
	t.Helper()
	// Not t.TempDir: the browser may write into its profile a moment longer than it runs, which would fail the test.
	profile, err := os.MkdirTemp("", "market-browser-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserPath(t)), chromedp.NoSandbox, chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(patience), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		stop()
		stopAllocator() // waits for the process
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
		}
	})
	b := &tab{t, ctx}
	if _, err := chromedp.Run(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return b
}

// do runs one action within patience.
func do[T any](b *tab, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v", what, errors.Join(err, context.Cause(ctx)))
	}
	return got
}

func (b *tab) open(url string) {
	b.t.Helper()
	do(b, "open "+url, chromedp.Navigate(url))
}

// look sets how wide the window is, and which colours its user likes.
func (b *tab) look(width int, scheme string) {
	b.t.Helper()
	do(b, "resize", chromedp.EmulateViewport(int64(width), 800))
	do(b, "choose colours", chromedp.Action[chromedp.Void](func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}))
}

// text is what a person reads on the page; empty while there is none, between two pages.
func (b *tab) text() string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.readyState === 'complete' ? document.body.innerText : ''`))
	if err != nil {
		return ""
	}
	return text
}
