// Package upstream talks to the services that providers sell: it asks one for a caller (Client.Ask), looks whether one lives (Prober),
// and says from the type of what went wrong, or from the status of what came back, whose doing it was. Nothing reads an error's text.
//
// It never follows a redirect, never uses a proxy of the environment, and checks the address of every connection after the name was
// resolved. What goes from caller to service and back are allow-lists (headers.go), so that a header nobody thought of stays here.
//
// It keeps no books: what an outcome does to money, strikes or cooldowns is the caller's business.
//
// Units: sizes in bytes, waits as time.Duration.
package upstream
