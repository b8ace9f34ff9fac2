package testenv

import "flag"

// RunSideBySide lets more parallel tests run at once than there are processors: those of controllers wait most of the time.
// TestMain calls it before flags are parsed, so that -parallel on the command line wins.
func RunSideBySide() error { return flag.Set("test.parallel", "8") }
