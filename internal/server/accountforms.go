package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
)

var (
	accountFormTemplate    = accountTemplate("form")
	accountHeadersTemplate = accountTemplate("headers")
)

// A listingForm is a page with the form of a listing or of an endpoint.
type listingForm struct {
	frame
	Slug, Name            string // of the service that it is about; empty for a new one
	Heading, Lead, Button string
	Back                  string
	Revision              string // of the service that the form was made from; empty: it rests on none
	Problems              *problemsOnPage
	Parts                 []formPart
}

// A problemsOnPage says at the top of a form what keeps it from being done. Each problem leads to its field.
type problemsOnPage struct {
	Head   string
	Fields []fact
}

// A typedForm is a form as it came back: what was typed, and what is wrong with it. The zero value of what is wrong is that nothing is.
type typedForm struct {
	sets   []*fieldSet
	values url.Values
	stood  url.Values // what stands, as it would be typed; nil: nothing, or it does not matter
	beside map[string]string
	head   string
	others []string
}

// document makes what the form was typed for. nested puts the members of a set where its pointer says; a set without one fills the document itself.
func (t *typedForm) document(patch bool) (body []byte, problems []refusal.Field, err error) {
	document := map[string]any{}
	for _, set := range t.sets {
		members, wrong := set.gather(t.values, t.stood, patch)
		problems = append(problems, wrong...)
		in := document
		if set.At == firstEndpoint {
			in = endpointIn(document)
		}
		lay(members, in)
	}
	body, err = json.Marshal(document)
	return body, problems, err
}

// firstEndpoint is where the endpoint of a new listing lies in its document.
const firstEndpoint = "/endpoints/0"

func endpointIn(document map[string]any) map[string]any {
	if list, ok := document["endpoints"].([]any); ok {
		return list[0].(map[string]any)
	}
	endpoint := map[string]any{}
	document["endpoints"] = []any{endpoint}
	return endpoint
}

// lay puts members into an object; objects of the same name become one.
func lay(members, into map[string]any) {
	for name, v := range members {
		under, both := into[name].(map[string]any)
		over, object := v.(map[string]any)
		if both && object {
			lay(over, under)
			continue
		}
		into[name] = v
	}
}

// send makes the document and hands it on. Where a text is no JSON, nothing is handed on, and check says what else is wrong, so that people learn all of
// it at once.
func (t *typedForm) send(patch bool, check func(body []byte) error, do func(body []byte) error) error {
	body, wrong, err := t.document(patch)
	if err != nil {
		return err
	}
	if len(wrong) == 0 {
		return do(body)
	}
	no := refusal.New(call.InvalidRequest, "%s %s", wrong[0].Name, wrong[0].Message)
	no.Fields = wrong
	if more, ok := fieldsOf(check(body)); ok {
		no.Fields = append(no.Fields, more...)
	}
	return no
}

// refused takes up why a form was not done, and returns the status to say it with; false for an error that no form can put right.
func (t *typedForm) refused(c echo.Context, err error) (status int, ok bool) {
	no, is := errors.AsType[*refusal.Error](err)
	if !is || slices.Contains([]call.Reason{call.NotFound, call.Unauthorized, call.Forbidden, call.Internal}, no.Reason) {
		return 0, false
	}
	logOf(c).reason = no.Reason
	t.beside, t.others = besideFields(no.Fields, t.sets...)
	if len(no.Fields) == 0 {
		t.others = []string{plain(upperFirst(no.Detail))}
	}
	switch n := len(t.beside) + len(t.others); {
	case len(no.Fields) == 0:
		t.head = "Nothing was changed."
	case n == 1:
		t.head = "Nothing was changed: one thing has to be put right."
	default:
		t.head = "Nothing was changed: " + count(n) + " things have to be put right."
	}
	return statusFor(no.Reason, !no.Until.IsZero()), true
}

// show fills a page with the form as it stands.
func (t *typedForm) show(page *listingForm, editing bool) {
	left := map[string]string{}
	for name, problem := range t.beside {
		left[name] = problem
	}
	if t.head != "" {
		page.Problems = &problemsOnPage{Head: t.head}
	}
	for _, set := range t.sets {
		part := set.part(t.values, left, editing)
		for _, in := range part.Inputs {
			if in.Problem != "" {
				page.Problems.Fields = append(page.Problems.Fields, fact{Name: in.Label, Value: in.Problem, Link: "#" + in.ID})
			}
		}
		page.Parts = append(page.Parts, part)
	}
	for _, other := range t.others {
		page.Problems.Fields = append(page.Problems.Fields, fact{Value: other})
	}
}

// newListing is the form of a service with its first endpoint.
func newListing(values url.Values) *typedForm {
	return &typedForm{sets: append(serviceSets(), endpointSets("endpoint.", firstEndpoint)...), values: values}
}

// accountNew serves GET /account/services/new.
func (s *Server) accountNew(c echo.Context) error {
	form := newListing(url.Values{"probe.method": {"GET"}, "probe.statuses": {"200-299"}, "endpoint.method": {"GET"}})
	return s.writeNew(c, http.StatusOK, form)
}

func (s *Server) writeNew(c echo.Context, status int, form *typedForm) error {
	page := listingForm{frame: s.accountFrame(c, "new"), Heading: "List a service", Button: "List the service", Back: accountHome,
		Lead: "With its first endpoint; more can be added afterwards, and headers of yours, such as a key, too."}
	form.show(&page, false)
	return s.writePage(c, status, accountFormTemplate, page)
}

// accountCreate serves POST /account/services/new. The secrets are in the answer and nowhere else, so it is no redirect.
func (s *Server) accountCreate(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	form := newListing(values)
	var view serviceView
	err = form.send(false, func(body []byte) error {
		_, err := catalog.ParseDraft(body, s.rules)
		return err
	}, func(body []byte) (err error) {
		view, err = s.create(c, body)
		return err
	})
	if err != nil {
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		return s.writeNew(c, status, form)
	}
	c.Response().Header().Set(echo.HeaderLocation, servicePath(view.Slug))
	sent := sentOwned{slug: view.Slug, done: "The service is listed.", checks: view.Checks,
		once: []shownOnce{{"This secret shows your service that we ask.", "It stands in the header Market-Secret of each request. It is shown now and never again.", view.Secret.Value}}}
	sent.once = append(sent.once, webhookSecret(view.Notices)...)
	return s.writeOwned(c, http.StatusCreated, sent)
}

// webhookSecret is the secret that was made with the first webhook; none where it was not made just now.
func webhookSecret(n *noticesView) []shownOnce {
	if n == nil || n.Secret == "" {
		return nil
	}
	return []shownOnce{{"This secret signs what is sent to your webhook.", "It is shown now and never again.", n.Secret}}
}

func servicePath(slug string) string { return accountHome + "/services/" + url.PathEscape(slug) }

// accountEdit serves GET /account/services/{slug}/edit.
func (s *Server) accountEdit(c echo.Context) error {
	v, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	view, err := s.ownersView(c, &v)
	if err != nil {
		return err
	}
	form := &typedForm{sets: serviceSets()}
	if form.values, err = typedAs(view, form.sets); err != nil {
		return err
	}
	return s.writeEdit(c, http.StatusOK, &v, form, strconv.FormatInt(v.Revision, 10))
}

// typedAs is what stands as it would be typed.
func typedAs(view any, sets []*fieldSet) (url.Values, error) {
	values := url.Values{}
	for _, set := range sets {
		if err := set.typedOf(view, values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (s *Server) writeEdit(c echo.Context, status int, v *catalog.Service, form *typedForm, revision string) error {
	page := listingForm{frame: s.accountFrame(c, "service"), Slug: v.Slug, Name: plain(v.Name), Heading: "Change what it says of itself", Button: "Keep the changes",
		Back: servicePath(v.Slug), Revision: plain(revision), Lead: "It holds for every call that is asked from then on."}
	form.show(&page, true)
	return s.writePage(c, status, accountFormTemplate, page)
}

// accountChange serves POST of the same.
func (s *Server) accountChange(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	before, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	restsOn(c, values)
	form := &typedForm{sets: serviceSets(), values: values}
	values.Set("slug", before.Slug)
	view, err := s.ownersView(c, &before)
	if err != nil {
		return err
	}
	if form.stood, err = typedAs(view, form.sets); err != nil {
		return err
	}
	err = form.send(true, func(body []byte) error {
		_, err := before.ParsePatch(body, s.rules)
		return err
	}, func(body []byte) (err error) {
		view, err = s.editListing(c, body)
		return err
	})
	if err != nil {
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		return s.writeEdit(c, status, &before, form, values.Get("revision"))
	}
	if once := webhookSecret(view.Notices); once != nil || len(view.Checks) > 0 {
		return s.writeOwned(c, http.StatusOK, sentOwned{done: ownedDones["edited"], once: once, checks: view.Checks})
	}
	done := "edited"
	if view.Revision == before.Revision {
		done = "same"
	}
	return c.Redirect(http.StatusSeeOther, servicePath(before.Slug)+"?done="+done)
}

// restsOn has a change rest on the revision that its form was made from, as If-Match does for programs.
func restsOn(c echo.Context, values url.Values) {
	if revision := values.Get("revision"); revision != "" {
		c.Request().Header.Set("If-Match", `"`+revision+`"`)
	}
}

// accountRetire serves POST /account/services/{slug}/retire.
func (s *Server) accountRetire(c echo.Context) error {
	return s.accountDo(c, "retired", func(url.Values) error { return s.retire(c) })
}

// accountDo serves a form that has nothing to type but a button: what it does is seen on the page of the service, as is why it was not done.
func (s *Server) accountDo(c echo.Context, done string, do func(url.Values) error) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	if err := do(values); err != nil {
		form := &typedForm{}
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		page := listingForm{}
		form.show(&page, true)
		return s.writeOwned(c, status, sentOwned{problems: page.Problems})
	}
	return c.Redirect(http.StatusSeeOther, servicePath(c.Param("slug"))+"?done="+done)
}

// A headersPage changes what a service gets beside our own headers. No value that stands is on it, and none that was typed comes back.
type headersPage struct {
	frame
	Slug, Name          string
	Revision            string
	Rows                []headerRow
	NewName, NewProblem string
	Problems            *problemsOnPage
}

type headerRow struct {
	ID, Name, Problem string
	At                *moment
}

// accountHeaders serves GET /account/services/{slug}/headers.
func (s *Server) accountHeaders(c echo.Context) error {
	return s.writeHeaders(c, http.StatusOK, url.Values{}, nil)
}

func (s *Server) writeHeaders(c echo.Context, status int, values url.Values, no *refusal.Error) error {
	v, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	page := headersPage{frame: s.accountFrame(c, "service"), Slug: v.Slug, Name: plain(v.Name), Revision: strconv.FormatInt(v.Revision, 10), NewName: plain(values.Get("new_name"))}
	beside := map[string]string{}
	if no != nil {
		page.Revision = plain(values.Get("revision"))
		page.Problems = &problemsOnPage{Head: "Nothing was changed, and no value that you typed is kept."}
		if len(no.Fields) == 0 {
			page.Problems.Fields = []fact{{Value: plain(upperFirst(no.Detail))}}
		}
		for _, f := range no.Fields {
			name := unpointed(f.Name)
			beside[name] = plain(f.Message)
			page.Problems.Fields = append(page.Problems.Fields, fact{Name: plain(name), Value: plain(f.Message)})
		}
	}
	for i, h := range v.Headers {
		page.Rows = append(page.Rows, headerRow{ID: "header-" + strconv.Itoa(i), Name: plain(h.Name), At: momentOf(h.SetAt), Problem: beside[h.Name]})
		delete(beside, h.Name)
	}
	page.NewProblem = beside[values.Get("new_name")]
	return s.writePage(c, status, accountHeadersTemplate, page)
}

// unpointed is the member that a JSON pointer of an object names.
func unpointed(pointer string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(pointer, "/"))
}

// accountSetHeaders serves POST of the same.
func (s *Server) accountSetHeaders(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	restsOn(c, values)
	document := map[string]any{}
	for name, given := range values {
		if header, ok := strings.CutPrefix(name, "value:"); ok && given[0] != "" {
			document[header] = given[0]
		}
	}
	for _, header := range values["remove"] {
		document[header] = nil
	}
	if name, value := strings.TrimSpace(values.Get("new_name")), values.Get("new_value"); name != "" || value != "" {
		document[name] = value
	}
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if _, err := s.editHeaders(c, body, true); err != nil {
		no, is := errors.AsType[*refusal.Error](err)
		if _, ok := (&typedForm{}).refused(c, err); !is || !ok {
			return err
		}
		return s.writeHeaders(c, statusFor(no.Reason, !no.Until.IsZero()), values, no)
	}
	return c.Redirect(http.StatusSeeOther, servicePath(c.Param("slug"))+"?done=headers")
}
