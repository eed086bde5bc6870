// Package modules treats the modules of this repository as their users get them: from a module proxy, without the
// workspace. The proxy is a folder made from the files of the tree, in which every module has the version that the
// others require of the core. So a test sees what the workspace hides, before that version is released.
package modules
