import { defineNitroErrorHandler } from 'nitropack/runtime'
import { answerError } from './entrance.ts'

export default defineNitroErrorHandler((error, event) => answerError(error, event))
