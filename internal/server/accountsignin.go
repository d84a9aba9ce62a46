package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
	"market/web"
)

// signInPath is where sellers sign in.
const signInPath = accountHome + "/sign-in"

// signInPolicy lets the page that signs in run our one script, and no other one that is at our address. It asks the wallet of the browser, and us nothing:
// it fills in the forms of the page.
func (s *Server) signInPolicy() string {
	return strings.Replace(pagePolicy, "default-src 'none';", "default-src 'none'; script-src "+s.publicURL+scriptAt+";", 1)
}

// scriptAt is where the script is.
const scriptAt = "/signin.js"

// scriptPath changes with the script, so that a browser may keep one.
var scriptPath = func() string {
	sum := sha256.Sum256(web.SignIn)
	return scriptAt + "?v=" + hex.EncodeToString(sum[:4])
}()

var (
	accountSignInTemplate = accountTemplate("signin")
	accountSignTemplate   = accountTemplate("sign")
)

// A walletPage asks for the wallet that signs in. Without a script people type its address.
type walletPage struct {
	frame
	Next           string
	Problem        string
	Address        string // as it was typed
	AddressProblem string
}

// A messagePage shows the text to sign, and takes the signature.
type messagePage struct {
	frame
	Message, Address string
	Expires          *moment
	Next             string
	Wallet           bool // the script is to go on
	Problem          string
	SignatureProblem string
	Command          string
}

// Why somebody stands before the sign-in: the words are ours.
var signInWhys = map[string]string{
	"ended": "You are not signed in any more, so nothing was changed.",
	"out":   "You are signed out.",
}

// accountSignIn serves GET /account/sign-in.
func (s *Server) accountSignIn(c echo.Context) error {
	next := safeAccountNext(c.QueryParam("next"))
	_, _, ok, err := s.byCookie(c, s.accountCookie())
	if err != nil {
		return err
	}
	if ok {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.writeWalletPage(c, http.StatusOK, walletPage{Next: next, Problem: signInWhys[c.QueryParam("why")]})
}

func (s *Server) writeWalletPage(c echo.Context, status int, page walletPage) error {
	page.frame = s.accountFrame(c, "")
	page.Script = scriptPath
	return s.writePageUnder(c, status, s.signInPolicy(), accountSignInTemplate, page)
}

// accountChallenge serves POST /account/challenge: it makes the text for a wallet to sign.
func (s *Server) accountChallenge(c echo.Context) error {
	values, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	page := walletPage{Next: safeAccountNext(values.Get("next")), Address: plain(strings.TrimSpace(values.Get("address")))}
	made, err := s.challengeFor(c, strings.TrimSpace(values.Get("address")))
	if err != nil {
		status, why, ok := s.signInProblem(c, err)
		switch {
		case !ok:
			return err
		case status == http.StatusUnprocessableEntity:
			page.AddressProblem = why
		default:
			page.Problem = why
		}
		return s.writeWalletPage(c, status, page)
	}
	return s.writeMessagePage(c, http.StatusOK, messagePage{Message: made.Message, Expires: momentOf(made.Expires), Next: page.Next, Wallet: values.Get("wallet") != ""})
}

func (s *Server) challengeFor(c echo.Context, address string) (identity.Challenge, error) {
	body, err := json.Marshal(map[string]string{"address": address})
	if err != nil {
		return identity.Challenge{}, err
	}
	draft, err := identity.ParseChallenge(body)
	if err != nil {
		return identity.Challenge{}, err
	}
	return s.challenge(c, draft)
}

func (s *Server) writeMessagePage(c echo.Context, status int, page messagePage) error {
	page.frame = s.accountFrame(c, "")
	page.Script = scriptPath
	if lines := strings.SplitN(page.Message, "\n", 3); len(lines) == 3 {
		page.Address = lines[1]
	}
	page.Command = "market provider sign --key-file wallet.key message.txt"
	return s.writePageUnder(c, status, s.signInPolicy(), accountSignTemplate, page)
}

// accountSession serves POST /account/session: a text of ours with a signature over it opens a session.
func (s *Server) accountSession(c echo.Context) error {
	values, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	next := safeAccountNext(values.Get("next"))
	message := strings.ReplaceAll(values.Get("message"), "\r\n", "\n") // forms are sent with the line ends of mail
	opened, err := s.enterWith(c, message, strings.TrimSpace(values.Get("signature")))
	if err == nil {
		if err := s.keepSession(c, opened); err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, next)
	}
	status, why, ok := s.signInProblem(c, err)
	if !ok {
		return err
	}
	// A text that was used, or that is of another time, is good for nothing: a new one is made for the same wallet, where there is one.
	page := messagePage{Next: next, SignatureProblem: why}
	if lines := strings.SplitN(message, "\n", 3); len(lines) == 3 {
		if made, err := s.challengeFor(c, lines[1]); err == nil {
			page.Message, page.Expires = made.Message, momentOf(made.Expires)
			page.SignatureProblem, page.Problem = "", upperFirst(strings.TrimSuffix(why, "."))+". This is another text: sign it."
			return s.writeMessagePage(c, status, page)
		}
	}
	return s.writeWalletPage(c, status, walletPage{Next: next, Problem: why})
}

func (s *Server) enterWith(c echo.Context, message, signature string) (identity.Opened, error) {
	body, err := json.Marshal(map[string]string{"message": message, "signature": signature})
	if err != nil {
		return identity.Opened{}, err
	}
	draft, err := identity.ParseSignIn(body)
	if err != nil {
		return identity.Opened{}, err
	}
	return s.enter(c, draft)
}

// signInProblem says in words why nobody was signed in; false for an error that is none of theirs.
func (s *Server) signInProblem(c echo.Context, err error) (status int, why string, ok bool) {
	no, is := errors.AsType[*refusal.Error](err)
	if !is || no.Reason == call.Internal {
		return 0, "", false
	}
	logOf(c).reason = no.Reason
	why = no.Detail
	if len(no.Fields) > 0 {
		why = strings.TrimPrefix(no.Fields[0].Name, "/") + " " + no.Fields[0].Message
	}
	if !no.Until.IsZero() {
		wait := no.Until.Sub(s.now())
		setRetryAfter(c.Response().Header(), wait)
		why += ". Try again in " + strconv.Itoa(max(1, int(wait.Minutes())+1)) + " min"
	}
	return statusFor(no.Reason, !no.Until.IsZero()), plain(upperFirst(why)) + ".", true
}
