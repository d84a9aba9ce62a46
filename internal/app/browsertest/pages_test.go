package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"market/internal/app/apptest"
)

const axeFile = "../../../web/axe/node_modules/axe-core/axe.min.js"

// axeRun checks the page and says what is wrong, a line for each thing. Style sheets are not fetched again: the page's own policy forbids it. Of
// all that is checked only contrast is another one in other colours.
const axeRun = `axe.run({preload: false, resultTypes: ['violations'], %s}).then(r => r.violations.flatMap(
	v => v.nodes.map(n => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary)).join('\n'))`

// tooWide names what sticks out of the window; empty where nothing does.
const tooWide = `(() => { const w = document.documentElement.clientWidth
	if (document.documentElement.scrollWidth <= w) return ''
	return [...document.querySelectorAll('main *, header *, footer *')].filter(e => e.getBoundingClientRect().right > w + 1)
		.slice(0, 5).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 40)).join('; ') || 'something' })()`

// alive names whatever on the page could run, be it ours or a stranger's, but the one script of the page that signs in; empty where nothing can.
const alive = `[...document.querySelectorAll('*')].filter(e => !(e.tagName === 'SCRIPT' && e.getAttribute('src')?.startsWith('/signin.js?v=') &&
	location.pathname.startsWith('/account/') && e.textContent === '')).filter(e => ['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'IMG', 'BASE'].includes(e.tagName) ||
	[...e.attributes].some(a => a.name.startsWith('on') || a.name === 'style' || a.name === 'autofocus' || /^\s*(javascript|data):/i.test(a.value)))
	.map(e => e.outerHTML.slice(0, 80)).join('; ')`

// shots is where screenshots go; empty: none are taken. See make shots.
func shots() string { return os.Getenv("MARKET_SHOTS") }

func readAxe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatalf("axe-core is missing (scripts/setup test installs it): %v", err)
	}
	return string(text)
}

// Every page, empty and full, light and dark: no violation of axe-core, nothing that sticks out of the smallest telephone, nothing of a stranger
// that runs. B145.
func TestPages_AreForEverybodyAndRunNothing(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	full := openShop(t)
	empty := apptest.Start(t)
	views := full.views()
	for i := range views {
		views[i].url = full.URL + views[i].url
	}
	views = append(views, view{"catalog-empty", empty.URL + "/"})
	b := openTab(t)
	for _, v := range views {
		b.check(v, axe)
	}
}

// check looks at one page as everybody in turn does.
func (b *tab) check(v view, axe string) {
	t := b.t
	t.Helper()
	b.look(360, "light")
	b.open(v.url)
	if wide := do(b, v.name, chromedp.Evaluate[string](tooWide)); wide != "" {
		t.Errorf("%s: on a telephone this is too wide: %s", v.name, wide)
	}
	if title := do(b, v.name, chromedp.Title()); title == "pwned" || !strings.HasSuffix(title, " · market") {
		t.Errorf("%s: the title is %q", v.name, title)
	}
	if runs := do(b, v.name, chromedp.Evaluate[string](alive)); runs != "" {
		t.Errorf("%s: this could run: %s", v.name, runs)
	}
	do(b, v.name, chromedp.Evaluate[chromedp.Void](axe+";0"))
	for scheme, rules := range map[string]string{"light": "", "dark": "runOnly: ['color-contrast']"} {
		b.look(1280, scheme)
		if found := do(b, v.name+": axe", chromedp.Evaluate[string](fmt.Sprintf(axeRun, rules), chromedp.EvalAwaitPromise)); found != "" {
			t.Errorf("%s, %s:\n%s", v.name, scheme, found)
		}
	}
	b.shoot(v.name)
}

// shoot takes the screenshots of the page that is open, where somebody wants them.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if shots() == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{360, 390, 1280} {
			b.look(width, scheme)
			file := filepath.Join(shots(), name+"-"+strconv.Itoa(width)+"-"+scheme+".png")
			if err := os.WriteFile(file, do(b, "screenshot of "+name, chromedp.FullScreenshot(100)), 0o644); err != nil { //nolint:gosec // a picture
				b.t.Fatal(err)
			}
		}
	}
}
