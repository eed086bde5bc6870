package sqltest

// OfVersion shows how the image of a version is named.
var OfVersion = ofVersion
