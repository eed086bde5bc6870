package pages_test

import _ "gopkg.in/yaml.v3"
