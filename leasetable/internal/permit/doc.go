// Package permit has shares and semaphores: which permits fit in beside each other, and how one is claimed.
package permit
