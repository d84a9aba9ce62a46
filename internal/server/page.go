package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"market/docs"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/refusal"
	"market/web"
)

// pagePolicy lets a page of ours have our own style sheet and icon, and send its forms to us. It runs nothing.
const pagePolicy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// The pages. Each is put into the one frame.
var (
	catalogTemplate = pageTemplate("catalog")
	serviceTemplate = pageTemplate("service")
	callTemplate    = pageTemplate("call")
	callsTemplate   = pageTemplate("calls")
	rulesTemplate   = pageTemplate("rules")
	payTemplate     = pageTemplate("pay")
	pricingTemplate = pageTemplate("pricing")
	problemTemplate = pageTemplate("problem")
)

func pageTemplate(name string) *template.Template {
	return template.Must(template.ParseFS(web.Templates, "templates/layout.html", "templates/"+name+".html"))
}

// adminTemplate is a page of the admin's, with the parts that those share.
func adminTemplate(name string) *template.Template {
	return template.Must(template.ParseFS(web.Templates, "templates/layout.html", "templates/adminparts.html", "templates/admin"+name+".html"))
}

// A frame is what every page has around what is its own.
type frame struct {
	Style     string   // address of the style sheet
	Banners   []string // what a visitor has to know before everything else
	JSON      string   // the same for programs; empty where there is none
	Unlisted  bool     // search engines are to leave it out
	Searching bool     // it has a search of its own, or is no place for one
	Admin     *adminBar
	Account   *accountBar
	Script    string // address of the script; empty on every page but the one that signs in
}

func (s *Server) frame() frame {
	f := frame{Style: stylePath}
	if s.dev {
		f.Banners = append(f.Banners, "Development mode: not for real money.")
	}
	for _, n := range s.networks {
		if isTestnet(n) {
			f.Banners = append(f.Banners, networkName(n.V1Name, n.ID)+" is a test network: its money is worth nothing.")
		}
	}
	return f
}

// testnets are the chains of which we know that their money is worth nothing.
var testnets = map[uint64]bool{
	84532: true, 11155111: true, 17000: true, 80002: true, 421614: true, 11155420: true, 43113: true, 4801: true, 1328: true, 10143: true,
	5042002: true, 1337: true, 31337: true,
}

func isTestnet(n chain.Network) bool { return testnets[n.ChainID] }

// networkName names a network for people and for programs.
func networkName(v1Name, id string) string {
	if v1Name == "" {
		return id
	}
	return v1Name + " (" + id + ")"
}

// wantsPage says whether a person asks, with a browser.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// byBrowser says whether a person looks with a browser where programs are expected, which may say that they take HTML too.
func byBrowser(r *http.Request) bool {
	return wantsPage(r) && strings.Contains(r.UserAgent(), "Mozilla")
}

// writePage writes a page that no cache may keep, and that runs nothing.
func (s *Server) writePage(c echo.Context, status int, t *template.Template, page any) error {
	return s.writePageUnder(c, status, pagePolicy, t, page)
}

// writePageUnder is writePage for the page that may run a script of ours.
func (s *Server) writePageUnder(c echo.Context, status int, policy string, t *template.Template, page any) error {
	var body bytes.Buffer
	if err := t.Execute(&body, page); err != nil {
		return fmt.Errorf("render the page of %s: %w", c.Path(), err)
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	if h.Get("Referrer-Policy") == "" {
		h.Set("Referrer-Policy", "no-referrer")
	}
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	limitWrite(c)
	return c.HTMLBlob(status, body.Bytes())
}

// stylePath changes with the style sheet, so that a browser may keep one.
var stylePath = func() string {
	sum := sha256.Sum256(web.Style)
	return "/style.css?v=" + hex.EncodeToString(sum[:4])
}()

// guide serves a document as the text that it is written in.
func guide(c echo.Context) error {
	text, err := docs.Public.ReadFile(c.Param("name"))
	if err != nil {
		return refusal.New(call.NotFound, "there is no such document")
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", text)
}

// asset serves what changes with the program only.
func (s *Server) asset(mime string, content []byte) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Cache-Control", "public, max-age=86400")
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		return c.Blob(http.StatusOK, mime, content)
	}
}

// A moment is a time for people and for programs.
type moment struct{ Human, Machine string }

// momentOf returns nil for no time.
func momentOf(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{Human: t.UTC().Format("2006-01-02 15:04:05") + " UTC", Machine: timeJSON(t)}
}

// explorerLink leads to a transaction at the explorer of its network; empty where none is configured.
func (s *Server) explorerLink(network, transaction string) string {
	for _, n := range s.networks {
		if n.ID == network && strings.HasPrefix(n.Explorer, "https://") && transaction != "" {
			return strings.TrimSuffix(n.Explorer, "/") + "/tx/" + transaction
		}
	}
	return ""
}
