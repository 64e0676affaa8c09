'use strict'

/**
 * Runs a module of this checkout with Node 24, or says what is missing: `node tooling/node24.cjs tooling/build.ts`.
 * This file is plain JavaScript, because older versions of Node cannot even load TypeScript.
 */

const { optionalDependencies } = require('./node/package.json')

/** Why this Node cannot run the checkout, and what to do; undefined if it can. */
function nodeProblem({ version, platform, arch, isMusl }) {
  if (Number.parseInt(version, 10) >= 24) return undefined
  const musl = platform === 'linux' && isMusl()
  const place = `${platform === 'win32' ? 'win' : platform}-${arch}`
  const hasBundle = !musl && `node-${place}` in optionalDependencies
  const remedy = hasBundle
    ? 'Run `npm ci` without options such as --omit=optional or --os: it installs Node 24 in this folder.'
    : `There is no bundled Node for ${place}${musl ? ' with musl' : ''}: install Node 24 (https://nodejs.org), then run \`npm ci\` again.`
  return `Toolway needs Node 24: this is Node ${version}. ${remedy}`
}

const isMusl = () => !process.report.getReport().header.glibcVersionRuntime

if (require.main === module) {
  const { arch, platform, versions } = process
  const problem = nodeProblem({ version: versions.node, platform, arch, isMusl })
  if (problem === undefined) {
    // From here on, everything is as if the module had been started itself.
    process.argv.splice(1, 2, require('node:path').resolve(process.argv[2]))
    import(require('node:url').pathToFileURL(process.argv[1]).href)
  } else {
    process.stderr.write(`${problem}\n`)
    process.exitCode = 2
  }
}

module.exports = { nodeProblem }
