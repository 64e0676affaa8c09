#!/usr/bin/env node
'use strict'

/** The command behind `npx toolway` in a checkout: runs the command line from source. npm sets PATH to Node 24. */

const { join } = require('node:path')

process.argv.splice(1, 1, join(__dirname, '../node24.cjs'), join(__dirname, '../../src/cli/main.ts'))
require('node:module').runMain()
