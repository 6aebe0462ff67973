// The package for require(), in Node before 22 too: its modules come by import(), so that all of it is behind a promise.
module.exports = {
  load: async () => (await import('./node.js')).load(),
  loadReader: async () => (await import('./node.js')).loadReader(),
}
