// Package browsertest looks at the pages as people do, with a browser. It needs Chromium and axe-core: see scripts/setup.
//
// Units:
//
//	widths  CSS pixels
package browsertest
