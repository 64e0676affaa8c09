import * as z from 'zod'
import { promptsSection } from './prompts.ts'
import { flag, limit, names, numeric, size, text } from './values.ts'

const codeExecution = z.strictObject({
  enabled: flag().prefault(false).describe('Offers execute_code to the loop.'),
  environment: text('the name of an environment').default('scratch').describe('Environment that code runs in.'),
  timeout: limit().prefault('30s').describe('Time limit of one run.'),
})

/** The chat loop. */
export const chatSection = z.strictObject({
  model: text('the name of a model in the section models')
    .optional()
    .describe('Model that answers, by its name in models.'),
  mode: z
    .enum(['staged', 'agent'])
    .default('staged')
    .describe('staged: select, call, interpret; agent: the model goes on until it is done.'),
  maxSteps: numeric({ min: 1 }).prefault(8).describe('Most rounds of an answer.'),
  maxTools: numeric({ min: 1 }).prefault(16).describe('Most tools offered at a time.'),
  parallel: numeric({ min: 1 }).prefault(8).describe('Tool calls in flight.'),
  codeExecution: codeExecution.prefault({}).describe('Running code in the loop.'),
  approve: names('a tool as server.tool, with * where it helps, or writes')
    .default([])
    .describe("Tools of the loop that need a person's yes; writes stands for all that may change something."),
  maxResult: size().prefault('64KiB').describe('Most of one tool result that a model is told.'),
  maxConversation: size()
    .prefault('512KiB')
    .describe('Most that a model is sent at a time; beyond it the oldest tool results are shortened.'),
  prompts: promptsSection
    .prefault({})
    .describe('What the model is told at each stage; {message}, {tools}, {agent} and {date} are filled in.'),
})
