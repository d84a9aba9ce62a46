package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
)

// accountNewEndpoint serves GET /account/services/{slug}/endpoints/new.
func (s *Server) accountNewEndpoint(c echo.Context) error {
	form := &typedForm{sets: endpointSets("", ""), values: url.Values{"method": {"GET"}}}
	return s.writeEndpointForm(c, http.StatusOK, form, false)
}

// writeEndpointForm shows the form of an endpoint; editing says that it is there already.
func (s *Server) writeEndpointForm(c echo.Context, status int, form *typedForm, editing bool) error {
	v, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	page := listingForm{frame: s.accountFrame(c, "service"), Slug: v.Slug, Name: plain(v.Name), Heading: "Add an endpoint", Button: "Add the endpoint", Back: servicePath(v.Slug)}
	if editing {
		page.Heading, page.Button = "Change an endpoint", "Keep the changes"
		page.Lead = "A price that is raised holds for quotes from then on; everything else holds at once."
		page.Revision = plain(form.values.Get("revision"))
	}
	form.show(&page, editing)
	return s.writePage(c, status, accountFormTemplate, page)
}

// accountAddEndpoint serves POST of the same.
func (s *Server) accountAddEndpoint(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	form := &typedForm{sets: endpointSets("", ""), values: values}
	err = form.send(false, func(body []byte) error {
		_, err := catalog.ParseEndpointDraft(body, s.rules)
		return err
	}, func(body []byte) error {
		service, made, err := s.putEndpoint(c, body)
		if err == nil {
			s.logWarnings(service.Slug, s.ownersEndpoint(&service, made))
		}
		return err
	})
	if err != nil {
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		return s.writeEndpointForm(c, status, form, false)
	}
	return c.Redirect(http.StatusSeeOther, servicePath(c.Param("slug"))+"?done=added")
}

// accountEndpoint serves GET /account/services/{slug}/endpoints/{id}.
func (s *Server) accountEndpoint(c echo.Context) error {
	e, v, err := s.endpointOf(c)
	if err != nil {
		return err
	}
	form := &typedForm{sets: endpointSets("", "")}
	if form.values, err = typedAs(s.endpointView(v.Slug, e), form.sets); err != nil {
		return err
	}
	form.values.Set("revision", strconv.FormatInt(v.Revision, 10))
	return s.writeEndpointForm(c, http.StatusOK, form, true)
}

// accountChangeEndpoint serves POST of the same.
func (s *Server) accountChangeEndpoint(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	e, v, err := s.endpointOf(c)
	if err != nil {
		return err
	}
	restsOn(c, values)
	values.Set("method", e.Method)
	values.Set("path", e.Path)
	form := &typedForm{sets: endpointSets("", ""), values: values}
	if form.stood, err = typedAs(s.endpointView(v.Slug, e), form.sets); err != nil {
		return err
	}
	done := "endpoint"
	err = form.send(true, func(body []byte) error {
		_, err := e.ParsePatch(body, s.rules)
		return err
	}, func(body []byte) error {
		edited, err := s.changeEndpoint(c, body)
		if err == nil && edited.Changed {
			s.logWarnings(v.Slug, s.ownersEndpoint(&edited.Service, edited.Endpoint))
		} else if err == nil {
			done = "same"
		}
		return err
	})
	if err != nil {
		status, ok := form.refused(c, err)
		if !ok {
			return err
		}
		return s.writeEndpointForm(c, status, form, true)
	}
	return c.Redirect(http.StatusSeeOther, servicePath(v.Slug)+"?done="+done)
}

// accountRetireEndpoint serves POST /account/services/{slug}/endpoints/{id}/retire.
func (s *Server) accountRetireEndpoint(c echo.Context) error {
	return s.accountDo(c, "taken", func(url.Values) error { return s.takeEndpoint(c) })
}

// accountSecret serves POST /account/services/{slug}/secret. The secret is in the answer and nowhere else, so it is no redirect.
func (s *Server) accountSecret(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	after := strings.TrimSpace(values.Get("after_seconds"))
	document := map[string]any{}
	if after != "" {
		document["after_seconds"] = numberOrText(after)
	}
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	view, err := s.makeSecret(c, body)
	if err != nil {
		return s.orOwned(c, err, func(no *refusal.Error) sentOwned {
			return sentOwned{after: after, secretProblem: plain(upperFirst(strings.TrimPrefix(no.Detail, "/after_seconds ")))}
		})
	}
	since := view.Since
	return s.writeOwned(c, http.StatusCreated, sentOwned{once: []shownOnce{{"This is the new secret.",
		"It is sent from " + since + ". It is shown now and never again: take it beside the old one from now on.", view.Value}}})
}

// accountNoticeSecret serves POST /account/services/{slug}/notices/secret.
func (s *Server) accountNoticeSecret(c echo.Context) error {
	if _, ok, err := s.accountFormOf(c); !ok {
		return err
	}
	view, err := s.makeNoticeSecret(c)
	if err != nil {
		return s.orOwned(c, err, nil)
	}
	return s.writeOwned(c, http.StatusCreated, sentOwned{once: []shownOnce{{"This is the new secret of the webhook.",
		"The old one signs beside it until " + view.OldSignsTo + ". It is shown now and never again.", view.Secret}}})
}

// accountAppeal serves POST /account/services/{slug}/appeals.
func (s *Server) accountAppeal(c echo.Context) error {
	values, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	text, strike := strings.TrimSpace(values.Get("text")), values.Get("strike")
	document := map[string]any{"text": strings.Join(strings.Fields(text), " ")} // an answer is one line
	if strike != "" {
		document["strike"] = strike
	}
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if _, err := s.makeAppeal(c, body); err != nil {
		return s.orOwned(c, err, func(no *refusal.Error) sentOwned {
			return sentOwned{strike: strike, text: text, textProblem: plain(upperFirst(strings.TrimPrefix(no.Detail, "/text ")))}
		})
	}
	return c.Redirect(http.StatusSeeOther, servicePath(c.Param("slug"))+"?done=said")
}

// accountResend serves POST /account/services/{slug}/notices/{id}/resend.
func (s *Server) accountResend(c echo.Context) error {
	return s.accountDo(c, "resent", func(url.Values) error {
		_, err := s.sendAgain(c)
		return err
	})
}

// orOwned shows on the page of a service why something was not done: beside its field where the refusal is of what was typed, else above everything.
func (s *Server) orOwned(c echo.Context, err error, beside func(*refusal.Error) sentOwned) error {
	form := &typedForm{}
	status, ok := form.refused(c, err)
	if !ok {
		return err
	}
	no, _ := errors.AsType[*refusal.Error](err)
	if no.Reason == call.InvalidRequest && beside != nil {
		return s.writeOwned(c, status, beside(no))
	}
	page := listingForm{}
	form.show(&page, true)
	sent := sentOwned{problems: page.Problems}
	if beside != nil { // what was typed is not lost for it
		kept := beside(no)
		sent.strike, sent.text, sent.after = kept.strike, kept.text, kept.after
		sent.textProblem, sent.secretProblem = kept.textProblem, kept.secretProblem
	}
	return s.writeOwned(c, status, sent)
}
