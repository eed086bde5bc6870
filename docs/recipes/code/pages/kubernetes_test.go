package pages_test

import (
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// object has the fields of Kubernetes that the page uses, where they belong. Any other field is an error.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name         string
		GenerateName string `yaml:"generateName"`
	}
	Spec struct {
		// of a CronJob
		Schedule                string
		TimeZone                string `yaml:"timeZone"`
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int    `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				BackoffLimit *int `yaml:"backoffLimit"`
				Template     template
			}
		} `yaml:"jobTemplate"`

		// of a Job
		BackoffLimit            int `yaml:"backoffLimit"`
		TTLSecondsAfterFinished int `yaml:"ttlSecondsAfterFinished"`
		PodFailurePolicy        struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
				OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
			}
		} `yaml:"podFailurePolicy"`

		// of a Deployment
		Replicas int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}

		Template template // of a Job or a Deployment
	}
}

type template struct {
	Metadata struct{ Labels map[string]string }
	Spec     pod
}

type pod struct {
	RestartPolicy                 string `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		FSGroup int `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Volumes []struct {
		Name   string
		Secret struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
	}
	Containers []struct {
		Name, Image string
		Command     []string
		Env         []struct {
			Name      string
			ValueFrom struct {
				SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
}

// objects returns the objects of the page.
func objects(t *testing.T) (all []object) {
	t.Helper()
	for _, block := range blocks(t, "kubernetes", "yaml") {
		if block[0] != ' ' { // else it is a part of an object
			all = append(all, decode[object](t, block))
		}
	}
	return all
}

// decode returns what a block says, and fails the test at a field that Kubernetes does not know there.
func decode[T any](t *testing.T, block string) (value T) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(block))
	decoder.KnownFields(true)
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in\n%s", err, block)
	}
	return value
}

// pod returns the template of the pods of an object.
func (o object) pod(t *testing.T) pod {
	t.Helper()
	spec := o.Spec.Template.Spec
	if o.Kind == "CronJob" {
		spec = o.Spec.JobTemplate.Spec.Template.Spec
	}
	if len(spec.Containers) != 1 {
		t.Fatalf("%s has %d containers", o.Metadata.Name, len(spec.Containers))
	}
	return spec
}

func TestTheObjectsOfKubernetesFitTogether(t *testing.T) {
	t.Parallel()
	versions := map[string]string{"Job": "batch/v1", "CronJob": "batch/v1", "Deployment": "apps/v1"}
	for _, o := range objects(t) {
		spec := o.pod(t)
		container := spec.Containers[0]
		if versions[o.Kind] != o.APIVersion {
			t.Errorf("%s is a %s of %s", o.Metadata.Name, o.Kind, o.APIVersion)
		}
		delete(versions, o.Kind)
		if (o.Kind == "Deployment") != (spec.RestartPolicy == "") || o.Kind != "Deployment" && spec.RestartPolicy != "Never" {
			t.Errorf("%s is a %s with the restart policy %q", o.Metadata.Name, o.Kind, spec.RestartPolicy)
		}
		if spec.TerminationGracePeriodSeconds < 60 {
			t.Errorf("%s has a grace period of %d s", o.Metadata.Name, spec.TerminationGracePeriodSeconds)
		}
		if container.Command[0] != "sqllock" || !slices.Contains(container.Command, "--") {
			t.Errorf("%s runs %q", o.Metadata.Name, container.Command)
		}
		ref := container.Env[0].ValueFrom.SecretKeyRef
		if container.Env[0].Name != "SQLLOCK_DB" || ref.Name != "sqllock" || ref.Key != "url" {
			t.Errorf("%s has the environment %+v", o.Metadata.Name, container.Env)
		}
		for _, rule := range o.Spec.PodFailurePolicy.Rules {
			if rule.OnPodConditions == nil && rule.OnExitCodes.ContainerName != container.Name {
				t.Errorf("%s has a rule for the container %q", o.Metadata.GenerateName, rule.OnExitCodes.ContainerName)
			}
			// sqllock also ends with 69 when the tables are missing. A Job that ignored it would never end.
			if rule.Action == "Ignore" && slices.Contains(rule.OnExitCodes.Values, 69) {
				t.Errorf("%s ignores the exit code 69", o.Metadata.GenerateName)
			}
		}
		// With one name for all releases, only the first one would run.
		if o.Kind == "Job" && (o.Metadata.Name != "" || o.Metadata.GenerateName == "") {
			t.Errorf("the Job has the name %q", o.Metadata.Name)
		}
		// A second pod would find the name kept by --at-least, succeed, and hide that the first one has failed.
		if limit := o.Spec.JobTemplate.Spec.BackoffLimit; o.Kind == "CronJob" && (limit == nil || *limit != 0) {
			t.Errorf("%s starts a second pod after a failure", o.Metadata.Name)
		}
		for key, value := range o.Spec.Selector.MatchLabels {
			if o.Spec.Template.Metadata.Labels[key] != value {
				t.Errorf("%s selects pods that it does not make", o.Metadata.Name)
			}
		}
	}
	if len(versions) > 0 {
		t.Errorf("the page lacks %v", versions)
	}
}

// It is a part of a pod, not a whole object.
func TestTheFileOfThePasswordIsMounted(t *testing.T) {
	t.Parallel()
	var parts []string
	for _, block := range blocks(t, "kubernetes", "yaml") {
		if block[0] == ' ' {
			parts = append(parts, block)
		}
	}
	if len(parts) != 1 {
		t.Fatalf("the page has %d parts of objects", len(parts))
	}
	spec := decode[struct{ Spec pod }](t, parts[0]).Spec
	container, volume := spec.Containers[0], spec.Volumes[0]
	mount := container.VolumeMounts[0]
	if volume.Secret.SecretName != "sqllock" || mount.Name != volume.Name || !mount.ReadOnly {
		t.Errorf("the volume %+v is mounted as %+v", volume, mount)
	}
	// The key of the Secret is the name of the file.
	if i := slices.Index(container.Command, "--db-file"); i < 0 || container.Command[i+1] != mount.MountPath+"/url" {
		t.Errorf("the container runs %q, with the volume at %s", container.Command, mount.MountPath)
	}
	// An image of a release runs as another user than root, who reads the file as one of its group.
	if volume.Secret.DefaultMode != 0o440 || spec.SecurityContext.FSGroup == 0 {
		t.Errorf("the file has the mode %#o and the group %d", volume.Secret.DefaultMode, spec.SecurityContext.FSGroup)
	}
}
