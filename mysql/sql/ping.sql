-- Is this still a server that can be trusted with locks?
SELECT @@GLOBAL.read_only
