package server

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"market/internal/accesslog"
	"market/internal/identity"
	"market/web"
)

// Methods of a page, and of what is a page to a browser and a document to a program.
var pageMethods = []string{http.MethodGet, http.MethodHead}

// routes is the public door: the table, and nothing else.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.Pre(unhurried, cors)
	e.Use(accesslog.Requests(s.log, entryOf), middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: keepPanic}))
	for _, r := range s.table() {
		// The credential is asked for route by route: a group would ask for it at every address that does not exist, too.
		e.Add(r.method, r.path, s.guarded(r))
	}
	return e
}

// table has all routes of the public door, with who may use each of them.
func (s *Server) table() []route {
	return slices.Concat(s.callRoutes(), s.apiRoutes(), s.adminRoutes(), s.pageRoutes(), s.accountPageRoutes(), s.adminPageRoutes())
}

// callRoutes are those of what is sold. A credential of ours means nothing there: what a caller sends is for the service.
func (s *Server) callRoutes() []route {
	var all []route
	for _, method := range callMethods {
		all = append(all, route{method, "/s/*", anyone, "", s.paidCall}, route{method, "/try/*", anyone, "", s.trialCall})
	}
	return all
}

// apiRoutes are the API of callers and sellers. web/openapi.json describes each of them, and those of adminRoutes.
func (s *Server) apiRoutes() []route {
	const read, write, of = identity.ServicesRead, identity.ServicesWrite, identity.AccountRead
	return []route{
		{"GET", "/", anyone, "", s.index},
		{"GET", "/openapi.json", anyone, "", s.openAPI},
		{"GET", "/api/v1/calls", anyone, "", s.findCalls},
		{"GET", "/api/v1/calls/:id", anyone, "", s.callByID},
		{"GET", "/api/v1/plans", anyone, "", s.listPlans},
		{"GET", "/api/v1/rules", anyone, "", s.rulesTable},
		{"GET", "/api/v1/services", anyone, "", s.listServices},
		{"GET", "/api/v1/services/:slug", reader, read, s.serviceBySlug},

		{"POST", "/api/v1/auth/challenge", anyone, "", s.newChallenge},
		{"POST", "/api/v1/auth/session", anyone, "", s.newSession},
		{"DELETE", "/api/v1/auth/session", account, "", s.dropSession},
		{"GET", "/api/v1/provider", account, of, s.provider},
		{"GET", "/api/v1/provider/services", account, read, s.providersServices},
		{"GET", "/api/v1/provider/keys", account, "", s.listKeys},
		{"POST", "/api/v1/provider/keys", account, "", s.newKey},
		{"DELETE", "/api/v1/provider/keys/:id", account, "", s.revokeKey},

		{"GET", "/api/v1/caller/calls", account, "", s.callerCalls},
		{"GET", "/api/v1/caller/refunds", account, "", s.callerRefunds},

		{"GET", "/api/v1/provider/payout-address", account, of, s.payoutAddresses},
		{"PUT", "/api/v1/provider/payout-address", account, "", s.setPayoutAddress},
		{"GET", "/api/v1/provider/earnings", account, of, s.earnings},
		{"GET", "/api/v1/provider/payouts", account, of, s.listPayouts},
		{"POST", "/api/v1/provider/payouts", account, "", s.askPayout},
		{"GET", "/api/v1/provider/payouts/:number/statement", account, of, s.statement},

		{"POST", "/api/v1/services", seller, write, s.createService},
		{"PATCH", "/api/v1/services/:slug", owner, write, s.editService},
		{"DELETE", "/api/v1/services/:slug", owner, write, s.retireService},
		{"GET", "/api/v1/services/:slug/revisions", owner, read, s.listRevisions},
		{"GET", "/api/v1/services/:slug/figures", owner, read, s.figuresOfService},
		{"PUT", "/api/v1/services/:slug/headers", owner, write, s.replaceHeaders},
		{"PATCH", "/api/v1/services/:slug/headers", owner, write, s.changeHeaders},
		{"POST", "/api/v1/services/:slug/secret", owner, write, s.newSecret},
		{"POST", "/api/v1/services/:slug/endpoints", owner, write, s.addEndpoint},
		{"PATCH", "/api/v1/services/:slug/endpoints/:id", owner, write, s.editEndpoint},
		{"DELETE", "/api/v1/services/:slug/endpoints/:id", owner, write, s.retireEndpoint},
		{"POST", "/api/v1/services/:slug/appeals", owner, write, s.appeal},
		{"GET", "/api/v1/services/:slug/appeals", owner, read, s.listAppeals},
		{"GET", "/api/v1/services/:slug/strikes", owner, read, s.providersStrikes},
		{"GET", "/api/v1/services/:slug/notices", owner, read, s.listLetters},
		{"POST", "/api/v1/services/:slug/notices/secret", owner, write, s.newNoticeSecret},
		{"POST", "/api/v1/services/:slug/notices/:id/resend", owner, write, s.sendLetterAgain},
	}
}

// adminRoutes are the API of admins.
func (s *Server) adminRoutes() []route {
	return []route{
		{"GET", "/api/v1/admin/strikes", admin, "", s.listStrikes},
		{"GET", "/api/v1/admin/strikes/:slug", admin, "", s.strikesBySlug},
		{"POST", "/api/v1/admin/strikes/:id/void", admin, "", s.voidStrike},
		{"POST", "/api/v1/admin/strikes/:id/uphold", admin, "", s.upholdStrike},
		{"GET", "/api/v1/admin/audit", admin, "", s.listAudit},
		{"GET", "/api/v1/admin/outages", admin, "", s.listOutages},
		{"GET", "/api/v1/admin/notices", admin, "", s.listNotices},
		{"POST", "/api/v1/admin/notices/test", admin, "", s.testNotices},
		{"GET", "/api/v1/admin/sources", admin, "", s.listSources},
		{"POST", "/api/v1/admin/sources/*", admin, "", s.trySource},
		{"GET", "/api/v1/admin/refunds", admin, "", s.listRefunds},
		{"POST", "/api/v1/admin/refunds/:id/retry", admin, "", s.retryRefund},
		{"GET", "/api/v1/admin/reviews", admin, "", s.listReviews},
		{"POST", "/api/v1/admin/reviews/:id/refund", admin, "", s.refundReviewed},
		{"POST", "/api/v1/admin/reviews/:id/serve", admin, "", s.serveReviewed},
		{"GET", "/api/v1/admin/switches", admin, "", s.listSwitches},
		{"POST", "/api/v1/admin/switches", admin, "", s.setSwitch},
		{"GET", "/api/v1/admin/money", admin, "", s.showMoney},
		{"POST", "/api/v1/admin/money/entries", admin, "", s.bookEntry},
		{"POST", "/api/v1/admin/money/reconcile", admin, "", s.reconcileNow},
		{"GET", "/api/v1/admin/accounts", admin, "", s.listAccounts},
		{"POST", "/api/v1/admin/accounts/:id/plan", admin, "", s.setPlan},
		{"GET", "/api/v1/admin/admins", admin, "", s.listAdmins},
		{"POST", "/api/v1/admin/admins", admin, "", s.setAdmin},
		{"GET", "/api/v1/admin/payouts", admin, "", s.listAllPayouts},
		{"POST", "/api/v1/admin/payouts", admin, "", s.payNow},
		{"POST", "/api/v1/admin/payouts/:id/hold", admin, "", s.decidePayout("hold")},
		{"POST", "/api/v1/admin/payouts/:id/release", admin, "", s.decidePayout("release")},
		{"POST", "/api/v1/admin/payouts/:id/retry", admin, "", s.decidePayout("retry")},
		{"POST", "/api/v1/admin/payouts/:id/cancel", admin, "", s.decidePayout("cancel")},
		{"GET", "/api/v1/admin/services", admin, "", s.listAllServices},
		{"POST", "/api/v1/admin/services/:slug/suspend", admin, "", s.suspendService},
		{"POST", "/api/v1/admin/services/:slug/relist", admin, "", s.relistService},
		{"POST", "/api/v1/admin/services/:slug/uphold", admin, "", s.upholdService},
	}
}

// pageRoutes are what is for people alone. At the other addresses of pages programs get the same as JSON.
func (s *Server) pageRoutes() []route {
	all := []route{
		{"HEAD", "/", visitor, "", s.index},
		{"GET", "/style.css", visitor, "", s.asset("text/css; charset=utf-8", web.Style)},
		{"GET", "/signin.js", visitor, "", s.asset("text/javascript; charset=utf-8", web.SignIn)},
		{"GET", "/favicon.svg", visitor, "", s.asset("image/svg+xml", web.Icon)},
		{"GET", "/favicon.ico", visitor, "", s.asset("image/svg+xml", web.Icon)},
	}
	return append(all, pages([]route{
		{"", "/services/:slug", reader, identity.ServicesRead, s.serviceBySlug},
		{"", "/calls", visitor, "", s.findCalls},
		{"", "/calls/:id", visitor, "", s.callByID},
		{"", "/pricing", visitor, "", s.listPlans},
		{"", "/rules", visitor, "", s.rulesTable},
		{"", "/docs/:name", visitor, "", guide},
	})...)
}

// adminPageRoutes are the pages on which an admin looks and decides. They show what the admin API tells, and decide by what it calls.
func (s *Server) adminPageRoutes() []route {
	return append(pages([]route{
		{"", adminHome, adminPage, "", s.adminOverview},
		{"", "/admin/strikes", adminPage, "", s.adminStrikes},
		{"", "/admin/strikes/:slug", adminPage, "", s.adminStrike},
		{"", "/admin/services", adminPage, "", s.adminServices},
		{"", "/admin/outages", adminPage, "", s.adminOutages},
		{"", "/admin/audit", adminPage, "", s.adminAudit},
		{"", "/admin/sources", adminPage, "", s.adminSources},
		{"", "/admin/notices", adminPage, "", s.adminNotices},
		{"", adminMoneyPath, adminPage, "", s.adminMoney},
		{"", adminRefundsPath, adminPage, "", s.adminRefunds},
		{"", adminPayoutsPath, adminPage, "", s.adminPayouts},
		{"", "/admin/switches", adminPage, "", s.adminSwitches},
		{"", "/admin/accounts", adminPage, "", s.adminAccounts},
		{"", "/admin/admins", adminPage, "", s.adminAdmins},
	}),
		route{"POST", "/admin/strikes/:slug", adminPage, "", s.adminDecide},
		route{"POST", "/admin/sources", adminPage, "", s.adminTry},
		route{"POST", "/admin/notices", adminPage, "", s.adminTestNotices},
		route{"POST", adminMoneyPath, adminPage, "", s.adminReconcile},
		route{"POST", adminRefundsPath, adminPage, "", s.adminDecideMoney},
		route{"POST", adminPayoutsPath, adminPage, "", s.adminDecidePayout},
		route{"POST", "/admin/switches", adminPage, "", s.adminSetSwitch},
		route{"POST", "/admin/accounts", adminPage, "", s.adminSetPlan},
		route{"POST", "/admin/admins", adminPage, "", s.adminSetAdmin},
		route{"POST", "/admin/session", adminDoor, "", s.signIn},
		route{"POST", "/admin/session/end", adminPage, "", s.signOut},
	)
}

// pages gives routes the methods that a page has.
func pages(of []route) []route {
	var all []route
	for _, r := range of {
		for _, method := range pageMethods {
			r.method = method
			all = append(all, r)
		}
	}
	return all
}
