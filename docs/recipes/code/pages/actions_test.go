package pages_test

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// workflow has the fields of GitHub Actions that the page uses. Any other field is an error.
type workflow struct {
	Name string
	On   struct {
		Push struct{ Branches []string }
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn         string `yaml:"runs-on"`
		TimeoutMinutes int    `yaml:"timeout-minutes"`
		Steps          []struct {
			Name, Uses, Run string
			Env             map[string]string
		}
	}
}

func TestTheWorkflowOfGitHubDeploys(t *testing.T) {
	t.Parallel()
	decoder := yaml.NewDecoder(strings.NewReader(blocks(t, "github-actions", "yaml")[0]))
	decoder.KnownFields(true)
	var w workflow
	if err := decoder.Decode(&w); err != nil {
		t.Fatal(err)
	}
	job := w.Jobs["deploy"]
	step := job.Steps[len(job.Steps)-1]
	if step.Env["SQLLOCK_DB"] != "${{ secrets.SQLLOCK_DB }}" {
		t.Errorf("the step has the environment %v", step.Env)
	}
	// Without exec a run that is cancelled tells only the shell.
	if !strings.HasPrefix(step.Run, "exec sqllock run --wait 30m ") || job.TimeoutMinutes <= 30 {
		t.Errorf("the step runs %q, in a job of %d minutes", step.Run, job.TimeoutMinutes)
	}
}
