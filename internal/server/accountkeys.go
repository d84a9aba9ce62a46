package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/identity"
)

var accountKeysTemplate = accountTemplate("keys")

// A keysPage lists the API keys of an account, and makes and revokes them.
type keysPage struct {
	frame
	Done     string
	Once     []shownOnce
	Problems *problemsOnPage
	Keys     []keyOnPage
	Parts    []formPart
}

type keyOnPage struct {
	ID, Name, Hint   string
	Scopes           []string
	State            badge // empty: it is good
	Made, Ends, Used *moment
	Live             bool
}

// never is the lifetime of a key that does not end; the others are counted from now.
const never = "never"

var keyLifetimes = map[string]time.Duration{"30 days": 30 * 24 * time.Hour, "90 days": 90 * 24 * time.Hour, "a year": 365 * 24 * time.Hour}

func keyForm(values url.Values) *typedForm {
	scopes := scopesOf(identity.Scopes())
	return &typedForm{values: values, sets: []*fieldSet{{Fields: []formField{
		{Path: []string{"name"}, Label: "Name", Control: oneLine, Asked: true, Hint: "For you: where it is used."},
		{Path: []string{"scopes"}, Label: "It may", Control: tickedOf, Options: scopes, Hint: "See your services as their owner; list and change them; see the account and its plan."},
		{Path: []string{"expires_at"}, Label: "It ends in", Control: oneOf, Options: []string{never, "30 days", "90 days", "a year"}},
	}}}}
}

// accountKeys serves GET /account/keys.
func (s *Server) accountKeys(c echo.Context) error {
	page := keysPage{}
	if c.QueryParam("done") == "revoked" {
		page.Done = "The key is revoked: it does nothing any more."
	}
	return s.writeKeys(c, http.StatusOK, page, keyForm(url.Values{"scopes": {string(identity.ServicesRead)}}))
}

func (s *Server) writeKeys(c echo.Context, status int, page keysPage, form *typedForm) error {
	keys, err := s.identities.Keys(c.Request().Context(), s.db, principalOf(c).Account)
	if err != nil {
		return err
	}
	page.frame = s.accountFrame(c, "keys")
	now := s.now()
	for _, k := range keys {
		shown := keyOnPage{ID: k.ID.String(), Name: plain(k.Name), Hint: plain(k.Hint), Made: momentOf(k.CreatedAt), Ends: momentOf(k.ExpiresAt), Used: momentOf(k.LastUsedAt)}
		shown.Scopes = scopesOf(k.Scopes)
		switch {
		case !k.RevokedAt.IsZero():
			shown.State = badge{"revoked", "bad"}
		case hasEnded(k, now):
			shown.State = badge{"ended", "wait"}
		default:
			shown.Live = true
		}
		page.Keys = append(page.Keys, shown)
	}
	typed := listingForm{}
	form.show(&typed, false)
	page.Parts = typed.Parts
	if typed.Problems != nil {
		page.Problems = typed.Problems
	}
	return s.writePage(c, status, accountKeysTemplate, page)
}

// accountMakeKey serves POST of the same. The key is in the answer and nowhere else, so it is no redirect.
func (s *Server) accountMakeKey(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	form := keyForm(values)
	var made keyView
	err = form.send(false, nil, func(body []byte) (err error) {
		if body, err = endsAt(body, s.now()); err != nil {
			return err
		}
		draft, err := identity.ParseKeyDraft(body)
		if err != nil {
			return err
		}
		made, err = s.makeKey(c, draft)
		return err
	})
	if err != nil {
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		return s.writeKeys(c, status, keysPage{}, form)
	}
	page := keysPage{Once: []shownOnce{{"This is the key.", "It is shown now and never again: keep it where your program reads it.", made.Token}}}
	return s.writeKeys(c, http.StatusCreated, page, keyForm(url.Values{"scopes": {string(identity.ServicesRead)}}))
}

// endsAt writes the lifetime that was chosen as the API takes it: the moment at which the key ends.
func endsAt(body []byte, now time.Time) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	chosen, _ := document["expires_at"].(string)
	delete(document, "expires_at")
	if lasts, ok := keyLifetimes[strings.TrimSpace(chosen)]; ok {
		document["expires_at"] = now.Add(lasts).UTC().Format(time.RFC3339)
	}
	return json.Marshal(document)
}

// accountRevokeKey serves POST /account/keys/{id}/revoke.
func (s *Server) accountRevokeKey(c echo.Context) error {
	if _, ok, err := s.accountFormOf(c); !ok {
		return err
	}
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.dropKey(c, id); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, accountHome+"/keys?done=revoked")
}
