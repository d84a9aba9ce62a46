package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  cobra.NoArgs,
		Run:   func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), version()) },
	}
}

// version is what the toolchain wrote into the binary: the commit, and whether the tree was clean.
func version() string {
	commit, dirty := "unknown commit", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = " with local changes"
			}
		}
	}
	return fmt.Sprintf("market %s%s (%s %s/%s)", commit, dirty, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
