/** find */
export {};
