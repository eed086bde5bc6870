package result

import (
	"path/filepath"
	"slices"
)

// Newest reads the newest run in a folder that was not quick; nil if there is none.
func Newest(folder string) (*Result, error) {
	names, err := filepath.Glob(filepath.Join(folder, "20*.json"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return Read(slices.Max(names))
}
